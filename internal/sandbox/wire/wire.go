// Package wire is the framed protocol between a front end and the sandbox-init
// that it talks to: the frames, their bounds, and a connection that sends and
// receives them over one bidirectional byte stream.
//
// A frame is a header of 8 bytes (type u8, stream u8, reserved u16, length u32,
// big-endian) and a payload. Control payloads are JSON, so that a field can be
// added without a new version; data, files and counters are binary. Each end
// treats every frame of the other as hostile: bounded, and refused when its
// turn has not come.
package wire

import "fmt"

// Version is the only protocol version this build speaks. Images carry it in
// the label mcp-agents.protocol.
const Version = 1

// Magic opens the front end's hello, so that a stream of anything else is
// told apart from another version.
const Magic = "mcp-agents-sandbox"

// Bounds of the protocol, in bytes.
const (
	HeaderSize = 8
	// MaxData bounds the payload of one data frame.
	MaxData = 64 << 10
	// MaxControl bounds the payload of every other frame.
	MaxControl = 1 << 20
	// MaxFile bounds the content of one login file: a control payload less
	// room for its name.
	MaxFile = MaxControl - 1024
	// MaxErrorText bounds the text of an error frame.
	MaxErrorText = 4 << 10
	// Window is the credit of each stream: what may be under way before the
	// consumer has taken any of it.
	Window = 256 << 10
)

// Type says what a frame is.
type Type uint8

// Ignorable marks a type that a receiver which does not know it may skip.
const Ignorable Type = 0x80

// The frame types. The comments give direction and payload.
const (
	TypeHello     Type = iota + 1 // both ways: Hello, Welcome
	TypeFile                      // to init: File
	TypeSpawn                     // to init: Spawn
	TypeStarted                   // from init: Started
	TypeData                      // both ways: bytes of a stream
	TypeCredit                    // both ways: u32, bytes the consumer took
	TypeEOF                       // both ways: end of a stream, behind its data
	TypeSignal                    // to init: Signal
	TypeResize                    // to init: Resize
	TypeExit                      // from init: Exit, once, after the drain
	TypeCollect                   // to init: Collect
	TypeCollected                 // from init: Collected
	TypePing                      // both ways: u64
	TypePong                      // both ways: the u64 of the ping
	TypeBye                       // to init: empty; init ends
	TypeError                     // both ways: Error; the sender gives up
	TypeListen                    // to init: Listen
	TypeListening                 // from init: Listening
	TypeOpen                      // both ways: Open; a connection, its stream chosen by the sender
	TypeClose                     // both ways: Close; the sender's last frame of a connection
)

// Streams of a command.
const (
	Stdin  uint8 = 0
	Stdout uint8 = 1
	Stderr uint8 = 2
)

// Streams of connections: the front end numbers those that it opens 3, 5, 7 …,
// init those that it opens 4, 6, 8 ….
const (
	FirstFront uint8 = 3
	FirstInit  uint8 = 4
	// MaxConns is how many connections each end may have opened at a time.
	MaxConns = 64
	// LastStream is the highest number of a stream.
	LastStream = FirstInit + 2*(MaxConns-1)
)

var typeNames = [...]string{"", "hello", "file", "spawn", "started", "data", "credit", "eof", "signal",
	"resize", "exit", "collect", "collected", "ping", "pong", "bye", "error", "listen", "listening", "open", "close"}

// Known reports whether t is a type of this version.
func (t Type) Known() bool { return t >= TypeHello && t <= TypeClose }

func (t Type) String() string {
	if t.Known() {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// max is the largest payload that a frame of type t may have.
func (t Type) max() int {
	if t == TypeData {
		return MaxData
	}
	return MaxControl
}

// Frame is one message of the protocol.
type Frame struct {
	Type    Type
	Stream  uint8
	Payload []byte
}

// ProtocolError says that the other end broke the protocol. Nothing that it
// sends afterwards can be trusted: the sandbox is destroyed.
type ProtocolError struct{ Text string }

func (e *ProtocolError) Error() string { return "sandbox protocol: " + e.Text }

// Errorf makes a ProtocolError.
func Errorf(format string, args ...any) error {
	return &ProtocolError{Text: fmt.Sprintf(format, args...)}
}
