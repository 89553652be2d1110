package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Hello is the front end's first frame.
type Hello struct {
	Magic   string `json:"magic"`
	Min     int    `json:"min"`
	Max     int    `json:"max"`
	Sandbox string `json:"sandbox"`
	// Grace is the time between TERM and KILL when the sandbox ends.
	Grace time.Duration `json:"grace_ns"`
	// Lifeline is how long init lives when nothing arrives on the stream.
	Lifeline time.Duration `json:"lifeline_ns"`
	// FilesDir is the directory below the home that file names are relative
	// to; empty means the home itself.
	FilesDir string `json:"files_dir,omitempty"`
	// Probe lists directories whose writability the welcome reports.
	Probe []string `json:"probe,omitempty"`
}

// Welcome is init's answer to a hello.
type Welcome struct {
	Version  int             `json:"version"`
	Build    string          `json:"build"`
	UID      int             `json:"uid"`
	GID      int             `json:"gid"`
	PID      int             `json:"pid"`
	Home     string          `json:"home"`
	FilesDir string          `json:"files_dir"`
	Writable map[string]bool `json:"writable,omitempty"`
	// MemoryLimit is the cgroup's limit in bytes, 0 if none is known.
	MemoryLimit int64 `json:"memory_limit,omitempty"`
}

// Spawn starts a command. Auxiliary commands run one after another; the one
// marked Main is the last, and nothing is forked after it.
type Spawn struct {
	Argv  []string `json:"argv"`
	Env   []string `json:"env"`
	Dir   string   `json:"dir"`
	Stdin bool     `json:"stdin"` // a pipe; otherwise closed
	Main  bool     `json:"main"`
	PTY   *Resize  `json:"pty,omitempty"`
	// Lifetime ends the command with TERM, grace and KILL; 0 means none.
	Lifetime time.Duration `json:"lifetime_ns,omitempty"`
	// Watch names files whose change is reported unasked.
	Watch []string `json:"watch,omitempty"`
}

// Started answers a spawn.
type Started struct {
	PID int `json:"pid"`
}

// Signal asks for a signal to the command's process group, or to every
// process of the sandbox but init.
type Signal struct {
	Number int  `json:"number"`
	All    bool `json:"all,omitempty"`
}

// Resize is a terminal's size in characters.
type Resize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Reason says why a command ended.
type Reason string

// The reasons of an exit.
const (
	ReasonExit        Reason = "exit"
	ReasonSignal      Reason = "signal"
	ReasonMemory      Reason = "memory"
	ReasonLifetime    Reason = "lifetime"
	ReasonSpawnFailed Reason = "spawn failed"
)

// Exit reports the end of a command, after its output was sent.
type Exit struct {
	Code   int    `json:"code"`             // exit status; 128+n for a signal
	Signal int    `json:"signal,omitempty"` // n, when a signal ended it
	Reason Reason `json:"reason"`
	Text   string `json:"text,omitempty"` // why a spawn failed
	// Bytes counts what went through stdin, stdout and stderr.
	Bytes [3]int64 `json:"bytes"`
}

// Collect asks for files after the exit.
type Collect struct {
	Names []string `json:"names"`
}

// Listen asks init to listen on a port of 127.0.0.1 in the sandbox, once, and to
// open a connection to the front end for each one that it takes.
type Listen struct {
	Port int `json:"port"`
}

// Listening answers a listen.
type Listening struct {
	Port  int    `json:"port"`
	Error string `json:"error,omitempty"` // why it cannot
}

// Open begins a connection. Port is a port of 127.0.0.1: from init the one that
// it listens on, from the front end the one to connect to inside. Data may
// follow at once; a connection that cannot be made is closed.
type Open struct {
	Port int `json:"port"`
}

// Close ends a connection. Each end sends one, as its last frame of the stream;
// the stream's number is free again for its opener once both have.
type Close struct {
	Error string `json:"error,omitempty"` // why it was cut off; empty after a regular end
}

// Error ends the conversation; Code is a token for programs.
type Error struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// FileNames is the fixed list of names that may enter or leave a sandbox.
var FileNames = []string{"auth.json", "config.toml", "models_cache.json", // codex
	".credentials.json", ".claude.json", "settings.json"} // claude

// ValidName reports whether name is on the list.
func ValidName(name string) bool { return slices.Contains(FileNames, name) }

// File is a login file on its way in. Its mode is always 0600.
type File struct {
	Name string
	Data []byte
}

// FileState says what became of a collected file.
type FileState uint8

// The states of a collected file.
const (
	FilePresent FileState = iota + 1
	FileMissing
	FileRefused // not a regular file, too large, or unreadable
)

// Collected is a login file on its way out. It is hostile: the command wrote it.
type Collected struct {
	Name  string
	State FileState
	Asked bool // false when a watched file changed
	Data  []byte
}

// Marshal encodes a JSON control payload.
func Marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("wire: payload type cannot be encoded: " + err.Error()) // only our own structs come here
	}
	return b
}

// Unmarshal decodes the JSON payload of f into v.
func Unmarshal(f Frame, v any) error {
	if err := json.Unmarshal(f.Payload, v); err != nil {
		return Errorf("%s frame of %d bytes: %v", f.Type, len(f.Payload), err)
	}
	return nil
}

// AppendUint32 and Uint32 code the payload of a credit frame.
func AppendUint32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// Uint32 decodes a payload of exactly 4 bytes.
func Uint32(f Frame) (uint32, error) {
	if len(f.Payload) != 4 {
		return 0, Errorf("%s frame of %d bytes, want 4", f.Type, len(f.Payload))
	}
	return binary.BigEndian.Uint32(f.Payload), nil
}

// EncodeFile codes a file frame: u8 name length, name, content.
func EncodeFile(f File) ([]byte, error) {
	if !ValidName(f.Name) {
		return nil, errors.New("file name is not on the list: " + f.Name)
	}
	if len(f.Data) > MaxFile {
		return nil, errors.New("file is larger than 1 MiB: " + f.Name)
	}
	b := append([]byte{byte(len(f.Name))}, f.Name...)
	return append(b, f.Data...), nil
}

// DecodeFile decodes a file frame. The content is a copy.
func DecodeFile(f Frame) (File, error) {
	name, rest, err := cutName(f, f.Payload)
	if err != nil {
		return File{}, err
	}
	return File{Name: name, Data: bytes.Clone(rest)}, nil
}

// EncodeCollected codes a collected frame: state, asked, name, content.
func EncodeCollected(c Collected) []byte {
	asked := byte(0)
	if c.Asked {
		asked = 1
	}
	b := append([]byte{byte(c.State), asked, byte(len(c.Name))}, c.Name...)
	return append(b, c.Data...)
}

// DecodeCollected decodes a collected frame. The content is a copy.
func DecodeCollected(f Frame) (Collected, error) {
	if len(f.Payload) < 2 || f.Payload[0] < byte(FilePresent) || f.Payload[0] > byte(FileRefused) || f.Payload[1] > 1 {
		return Collected{}, Errorf("malformed collected frame")
	}
	name, rest, err := cutName(f, f.Payload[2:])
	if err != nil {
		return Collected{}, err
	}
	return Collected{Name: name, State: FileState(f.Payload[0]), Asked: f.Payload[1] == 1, Data: bytes.Clone(rest)}, nil
}

func cutName(f Frame, b []byte) (string, []byte, error) {
	if len(b) < 1 || len(b) < 1+int(b[0]) {
		return "", nil, Errorf("malformed %s frame", f.Type)
	}
	end := 1 + int(b[0])
	name, rest := string(b[1:end]), b[end:]
	if !ValidName(name) {
		return "", nil, Errorf("%s frame names a file that is not on the list", f.Type)
	}
	if len(rest) > MaxFile {
		return "", nil, Errorf("%s frame holds a file of %d bytes, at most %d", f.Type, len(rest), MaxFile)
	}
	return name, rest, nil
}
