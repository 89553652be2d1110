package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox/wire"
)

// pipeRuntime starts sandboxes whose init is a function of the test.
type pipeRuntime struct {
	Runtime
	init func(*fakeInit)
	inst *pipeInstance
}

func (r *pipeRuntime) Start(context.Context, Spec) (Instance, error) {
	a, b := net.Pipe()
	r.inst = &pipeInstance{Conn: a}
	r.inst.init.Go(func() {
		defer b.Close()
		r.init(&fakeInit{Reader: wire.NewReader(b), w: b})
	})
	return r.inst, nil
}

type pipeInstance struct {
	net.Conn
	init      sync.WaitGroup
	destroyed bool
	broken    error // of Destroy
}

func (*pipeInstance) ID() string          { return "fake" }
func (*pipeInstance) Diagnostics() string { return "last words" }

func (i *pipeInstance) Destroy(context.Context) error {
	i.destroyed = true
	_ = i.Conn.Close()
	i.init.Wait()
	return i.broken
}

// fakeInit plays sandbox-init, badly. Its writes fail silently once the front
// end has hung up.
type fakeInit struct {
	*wire.Reader
	w io.Writer
}

func (f *fakeInit) send(t wire.Type, stream uint8, payload []byte) {
	b := append([]byte{byte(t), stream, 0, 0}, wire.AppendUint32(uint32(len(payload)))...)
	_, _ = f.w.Write(append(b, payload...))
}

func (f *fakeInit) json(t wire.Type, v any) { f.send(t, 0, wire.Marshal(v)) }

func (f *fakeInit) expect(t wire.Type) wire.Frame {
	for {
		frame, err := f.Next()
		if err != nil || frame.Type == t {
			return frame
		}
	}
}

func (f *fakeInit) greet() {
	f.expect(wire.TypeHello)
	f.json(wire.TypeHello, wire.Welcome{Version: wire.Version})
}

func (f *fakeInit) started() {
	f.expect(wire.TypeSpawn)
	f.json(wire.TypeStarted, wire.Started{PID: 7})
}

// drain reads until the front end hangs up.
func (f *fakeInit) drain() { f.expect(0) }

func open(t *testing.T, init func(*fakeInit)) (*Sandbox, error) {
	return Open(t.Context(), &pipeRuntime{init: init}, Spec{}, slog.New(slog.DiscardHandler))
}

// within is the bound of every end: the lifeline, one beat more, and the slack.
const within = DefaultLifeline + Heartbeat + DefaultGrace + slack

// spawnAndWait opens a sandbox, spawns, and returns the first error.
func spawnAndWait(t *testing.T, init func(*fakeInit)) (err error) {
	box, err := open(t, init)
	if err != nil {
		return err
	}
	defer func() { require.NoError(t, box.Close(t.Context())) }()
	p, err := box.Spawn(t.Context(), Command{Argv: []string{"x"}})
	if err != nil {
		return err
	}
	_, err = p.Wait(t.Context())
	if err == nil {
		<-box.Ended()
		err = box.Err()
	}
	return err
}

func TestHostileInit(t *testing.T) {
	running := func(next func(*fakeInit)) func(*fakeInit) {
		return func(f *fakeInit) { f.greet(); f.started(); next(f); f.drain() }
	}
	for name, tt := range map[string]struct {
		init func(*fakeInit)
		want string // a part of the error
		ours bool   // a *wire.ProtocolError
	}{
		"garbage":              {func(f *fakeInit) { _, _ = f.w.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, "unknown frame type 72", true},
		"end at once":          {func(*fakeInit) {}, "ended unexpectedly", false},
		"end in a frame":       {func(f *fakeInit) { _, _ = f.w.Write([]byte{1, 0, 0}) }, "unexpected EOF", false},
		"silence":              {func(f *fakeInit) { f.drain() }, "nothing arrived from it for", false},
		"silence after hello":  {func(f *fakeInit) { f.greet(); f.drain() }, "nothing arrived from it for", false},
		"silence when running": {running(func(*fakeInit) {}), "nothing arrived from it for", false},
		"another version":      {func(f *fakeInit) { f.json(wire.TypeHello, wire.Welcome{Version: 2, Build: "9.9"}); f.drain() }, "sandbox-init 9.9 speaks version 2, this front end 1", true},
		"version error": {func(f *fakeInit) {
			f.json(wire.TypeError, wire.Error{Code: "version", Text: "speaks version 2"})
			f.drain()
		}, "speaks version 2", false},
		"hello is no JSON": {func(f *fakeInit) { f.send(wire.TypeHello, 0, []byte("{")); f.drain() }, "hello frame of 1 bytes", true},
		"second hello":     {running(func(f *fakeInit) { f.json(wire.TypeHello, wire.Welcome{Version: 1}) }), "a second hello", true},
		"started unasked":  {func(f *fakeInit) { f.json(wire.TypeStarted, wire.Started{}); f.drain() }, "started frame while no command runs", true},
		"started twice":    {running(func(f *fakeInit) { f.json(wire.TypeStarted, wire.Started{}) }), "a second started", true},
		"exit before the start": {func(f *fakeInit) {
			f.greet()
			f.expect(wire.TypeSpawn)
			f.json(wire.TypeExit, wire.Exit{Reason: wire.ReasonExit})
			f.drain()
		}, "does not fit the start", true},
		"failed after the start": {running(func(f *fakeInit) { f.json(wire.TypeExit, wire.Exit{Reason: wire.ReasonSpawnFailed}) }), "does not fit the start", true},
		"exit twice": {running(func(f *fakeInit) {
			f.json(wire.TypeExit, wire.Exit{Reason: wire.ReasonExit})
			f.json(wire.TypeExit, wire.Exit{Reason: wire.ReasonExit})
		}), "exit frame while no command runs", true},
		"data after the exit": {running(func(f *fakeInit) {
			f.json(wire.TypeExit, wire.Exit{Reason: wire.ReasonExit})
			f.send(wire.TypeData, wire.Stdout, []byte("x"))
		}), "data frame while no command runs", true},
		"data beyond credit": {running(func(f *fakeInit) {
			for range wire.Window/wire.MaxData + 1 {
				f.send(wire.TypeData, wire.Stderr, make([]byte, wire.MaxData))
			}
		}), "beyond its credit", true},
		"data for stdin":  {running(func(f *fakeInit) { f.send(wire.TypeData, wire.Stdin, []byte("x")) }), "data frame for stream 0", true},
		"end of stdin":    {running(func(f *fakeInit) { f.send(wire.TypeEOF, wire.Stdin, nil) }), "eof frame for stream 0", true},
		"data behind end": {running(func(f *fakeInit) { f.send(wire.TypeEOF, 1, nil); f.send(wire.TypeData, 1, []byte("x")) }), "after its end", true},
		"credit for stdout": {running(func(f *fakeInit) { f.send(wire.TypeCredit, wire.Stdout, wire.AppendUint32(1)) }),
			"credit for stream 1", true},
		"credit never spent": {running(func(f *fakeInit) { f.send(wire.TypeCredit, wire.Stdin, wire.AppendUint32(1)) }), "exceeds the window", true},
		"short credit":       {running(func(f *fakeInit) { f.send(wire.TypeCredit, wire.Stdin, []byte{1}) }), "credit frame of 1 bytes", true},
		"collected unasked": {running(func(f *fakeInit) {
			f.send(wire.TypeCollected, 0, wire.EncodeCollected(wire.Collected{Name: "auth.json", State: wire.FilePresent, Asked: true}))
		}), "nobody asked for", true},
		"file that is not on the list": {running(func(f *fakeInit) { f.send(wire.TypeCollected, 0, []byte("\x01\x00\x06passwd")) }), "not on the list", true},
		"a frame for init":             {running(func(f *fakeInit) { f.send(wire.TypeBye, 0, nil) }), "bye frame is not for the front end", true},
		"error with a long text": {running(func(f *fakeInit) {
			f.json(wire.TypeError, wire.Error{Text: string(bytes.Repeat([]byte("e"), 500_000))})
		}),
			"eeee", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				err := spawnAndWait(t, tt.init)
				var lost *LostError
				require.ErrorAs(t, err, &lost)
				require.ErrorContains(t, err, tt.want)
				require.Less(t, len(err.Error()), 5000)
				require.Less(t, time.Since(begin), within)
				var broken *wire.ProtocolError
				require.Equal(t, tt.ours, errors.As(err, &broken))
			})
		})
	}
}

// The control of the table: a proper init gives no error.
func TestProperInit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := open(t, func(f *fakeInit) {
			f.greet()
			f.started()
			f.send(wire.TypeData, wire.Stdout, []byte("out"))
			f.json(wire.TypeExit, wire.Exit{Code: 3, Reason: wire.ReasonExit})
			f.expect(wire.TypeBye)
		})
		require.NoError(t, err)
		p, err := box.Spawn(t.Context(), Command{Argv: []string{"x"}})
		require.NoError(t, err)
		require.Equal(t, 7, p.PID())
		out, err := io.ReadAll(p.Stdout())
		require.NoError(t, err)
		require.Equal(t, "out", string(out))
		exit, err := p.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, exit.Code)
		require.NoError(t, box.Err())
		begin := time.Now()
		require.NoError(t, box.Close(t.Context()))
		require.Zero(t, time.Since(begin), "an init that obeys the bye is not waited for")
		require.ErrorIs(t, box.Err(), ErrClosed, "what we asked for is no loss")
		_, err = box.Spawn(t.Context(), Command{Argv: []string{"x"}})
		require.ErrorIs(t, err, ErrClosed)
	})
}

// Close ends everything that waits, however busy the other side and however
// idle the consumers, and does so once.
func TestCloseWhileNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &pipeRuntime{init: func(f *fakeInit) {
			f.greet()
			f.started()
			for range wire.Window / wire.MaxData {
				f.send(wire.TypeData, wire.Stdout, make([]byte, wire.MaxData))
			}
			f.drain() // deaf to the bye
		}}
		box, err := Open(t.Context(), rt, Spec{}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		p, err := box.Spawn(t.Context(), Command{Argv: []string{"x"}, Stdin: true})
		require.NoError(t, err)
		written := make(chan error, 1)
		go func() {
			_, err := p.Stdin().Write(make([]byte, 2*wire.Window))
			written <- err
		}()
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, box.Close(t.Context()))
		require.Equal(t, DefaultGrace+slack, time.Since(begin), "an init that is deaf gets the grace")
		require.True(t, rt.inst.destroyed)
		require.ErrorIs(t, <-written, ErrClosed)
		_, err = p.Wait(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, box.Close(t.Context()))
	})
}

// The peer reads nothing at all: not one frame of ours leaves.
func TestCloseWhenThePeerNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangup := make(chan struct{})
		rt := &pipeRuntime{init: func(*fakeInit) { <-hangup }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(time.Minute, func() { close(hangup) })
		begin := time.Now()
		_, err := Open(ctx, rt, Spec{}, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, rt.inst.destroyed)
		require.LessOrEqual(t, time.Since(begin), time.Minute)
	})
}

func TestCloseReportsAFailedDestruction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &pipeRuntime{init: func(f *fakeInit) { f.greet(); f.expect(wire.TypeBye) }}
		box, err := Open(t.Context(), rt, Spec{}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		rt.inst.broken = errors.New("still there")
		require.EqualError(t, box.Close(t.Context()), "still there")
		require.EqualError(t, box.Close(t.Context()), "still there", "asked again")
	})
}

func TestSpawnRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := open(t, func(f *fakeInit) { f.greet(); f.expect(wire.TypeSpawn); f.expect(wire.TypeBye) })
		require.NoError(t, err)
		defer func() { require.NoError(t, box.Close(t.Context())) }()
		_, err = box.Spawn(t.Context(), Command{})
		require.ErrorContains(t, err, "argv is empty")
		_, err = box.Spawn(t.Context(), Command{Argv: []string{"x"}, Env: []string{string(make([]byte, wire.MaxControl))}})
		require.ErrorContains(t, err, "at most 1048576", "what does not fit a frame")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = box.Spawn(ctx, Command{Argv: []string{"x"}})
		require.ErrorIs(t, err, context.Canceled)
		_, err = box.Spawn(t.Context(), Command{Argv: []string{"x"}})
		require.ErrorContains(t, err, "another command runs", "the cancelled one may run")
	})
}

func TestSpawnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := spawnAndWait(t, func(f *fakeInit) {
			f.greet()
			f.expect(wire.TypeSpawn)
			f.json(wire.TypeExit, wire.Exit{Code: 127, Reason: wire.ReasonSpawnFailed, Text: "command not found: x"})
			f.expect(wire.TypeBye)
		})
		var failed *SpawnError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 127, failed.Code)
		require.ErrorContains(t, err, "start x in the sandbox: command not found: x")
	})
}

func file(name, data string) []byte {
	return wire.EncodeCollected(wire.Collected{Name: name, State: wire.FilePresent, Asked: true, Data: []byte(data)})
}

// The answers of a cancelled collection are not taken for the next one's.
func TestCollectAfterACancelledCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		box, err := open(t, func(f *fakeInit) {
			f.greet()
			f.expect(wire.TypeCollect)
			<-answer
			f.send(wire.TypeCollected, 0, file("auth.json", "late"))
			f.expect(wire.TypeCollect)
			f.send(wire.TypeCollected, 0, file("config.toml", "asked"))
			f.expect(wire.TypeBye)
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, box.Close(t.Context())) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = box.Collect(ctx, "auth.json")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = box.Collect(t.Context(), "config.toml")
		require.ErrorContains(t, err, "another collection is under way")
		close(answer)
		synctest.Wait()
		got, err := box.Collect(t.Context(), "config.toml")
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, "config.toml asked", got[0].Name+" "+string(got[0].Data))
		got, err = box.Collect(t.Context())
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestCollectRefusesAnotherFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := open(t, func(f *fakeInit) {
			f.greet()
			f.expect(wire.TypeCollect)
			f.send(wire.TypeCollected, 0, file("config.toml", "{}"))
			f.drain()
		})
		require.NoError(t, err)
		_, err = box.Collect(t.Context(), "auth.json", "config.toml")
		require.ErrorContains(t, err, "nobody asked for")
		require.NoError(t, box.Close(t.Context()))
	})
}

// A callback that blocks holds no frame back, and misses no last content.
func TestChangedIsCalledWithTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, seen := make(chan struct{}), []string{}
		box, err := open(t, func(f *fakeInit) {
			f.greet()
			f.started()
			for i := range 100 {
				f.send(wire.TypeCollected, 0, wire.EncodeCollected(wire.Collected{Name: "auth.json", State: wire.FilePresent, Data: fmt.Append(nil, i)}))
			}
			f.json(wire.TypeExit, wire.Exit{Reason: wire.ReasonExit})
			f.expect(wire.TypeBye)
		})
		require.NoError(t, err)
		p, err := box.Spawn(t.Context(), Command{Argv: []string{"x"}, Watch: []string{"auth.json"},
			Changed: func(c wire.Collected) { <-gate; seen = append(seen, string(c.Data)) }})
		require.NoError(t, err)
		_, err = p.Wait(t.Context())
		require.NoError(t, err, "the exit passes a callback that blocks")
		close(gate)
		require.NoError(t, box.Close(t.Context()))
		require.LessOrEqual(t, len(seen), 3)
		require.Equal(t, "99", seen[len(seen)-1])
	})
}

// A ping is sent every 10 s, and a front end that was stopped for longer than
// the lifeline says that its sandbox is lost.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pings := make(chan time.Time, 100)
		box, err := open(t, func(f *fakeInit) {
			f.greet()
			for {
				frame, err := f.Next()
				if err != nil || frame.Type == wire.TypeBye {
					return
				}
				if frame.Type == wire.TypePing {
					pings <- time.Now()
					f.send(wire.TypePong, 0, frame.Payload)
				}
			}
		})
		require.NoError(t, err)
		begin := time.Now()
		time.Sleep(10*time.Minute + time.Second)
		require.NoError(t, box.Err(), "an idle sandbox that answers lives on")
		require.Len(t, pings, 60)
		require.Equal(t, Heartbeat, (<-pings).Sub(begin))
		require.NoError(t, box.Close(t.Context()))
	})
}

func TestStopLadder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		dies    int // of this signal
		signals []string
		after   time.Duration
	}{
		{"on TERM", 15, []string{`{"number":15}`}, 0},
		{"on KILL", 9, []string{`{"number":15}`, `{"number":9,"all":true}`}, DefaultGrace},
		{"never", 0, []string{`{"number":15}`, `{"number":9,"all":true}`}, DefaultGrace + slack},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				box, err := open(t, func(f *fakeInit) {
					f.greet()
					f.started()
					for {
						frame, err := f.Next()
						if err != nil || frame.Type == wire.TypeBye {
							return
						}
						var sig wire.Signal
						if frame.Type == wire.TypeSignal && wire.Unmarshal(frame, &sig) == nil {
							got = append(got, string(frame.Payload))
							if sig.Number == tt.dies {
								f.json(wire.TypeExit, wire.Exit{Code: 128 + sig.Number, Signal: sig.Number, Reason: wire.ReasonSignal})
							}
						}
					}
				})
				require.NoError(t, err)
				p, err := box.Spawn(t.Context(), Command{Argv: []string{"x"}})
				require.NoError(t, err)
				begin := time.Now()
				exit, err := p.Stop(t.Context())
				require.Equal(t, tt.after, time.Since(begin))
				if tt.dies == 0 {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					require.NoError(t, err)
					require.Equal(t, tt.dies, exit.Signal)
				}
				require.NoError(t, box.Close(t.Context()))
				require.Equal(t, tt.signals, got)
			})
		})
	}
}

// Whatever frames the sandbox sends, the front end neither panics nor hangs:
// it ends with a LostError, or lives on until it is closed.
func FuzzHandle(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{5, 1, 0, 0, 0, 0, 0, 3, 'a', 'b', 'c'})
	f.Add(append([]byte{10, 0, 0, 0, 0, 0, 0, 24}, `{"code":0,"reason":"ex"}`...))
	f.Add(append([]byte{12, 0, 0, 0, 0, 0, 0, 12}, "\x01\x01\x09auth.json"...))
	f.Add(append([]byte{12, 0, 0, 0, 0, 0, 1, 2}, append([]byte{1, 1, 255}, make([]byte, 255)...)...))
	f.Fuzz(func(t *testing.T, frames []byte) {
		synctest.Test(t, func(t *testing.T) {
			box, err := open(t, func(f *fakeInit) {
				f.greet()
				f.started()
				f.expect(wire.TypeCollect)
				_, _ = f.w.Write(frames)
				f.drain()
			})
			require.NoError(t, err)
			p, err := box.Spawn(t.Context(), Command{Argv: []string{"x"}, Stdin: true})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 2*DefaultLifeline)
			defer cancel()
			_, _ = box.Collect(ctx, "auth.json")
			_, err = p.Wait(ctx)
			var lost *LostError
			require.True(t, err == nil || errors.As(err, &lost), "%v", err)
			require.NoError(t, box.Close(context.WithoutCancel(ctx)))
		})
	})
}
