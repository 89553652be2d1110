package stdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
)

// hold returns a handler that answers "hold" only when release is closed.
func hold(release <-chan struct{}) Handler {
	return func(ctx context.Context, req *Request) (*mcp.Response, error) {
		if req.Method == "hold" {
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return echo(ctx, req)
	}
}

const holdCall = `{"id":"h","method":"hold"}` + "\n"

func TestServeIdleTimer(t *testing.T) {
	t.Run("each message re-arms it, then the hook runs and the input is closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hooked := 0
			d := drive(t, echo, Options{IdleTimeout: time.Minute, OnIdle: func() { hooked++ }})
			for _, in := range []string{call("1") + "\n", "{bad\n", `{"method":"m"}` + "\n"} {
				time.Sleep(59 * time.Second)
				d.send(in)
			}
			time.Sleep(time.Minute - 1)
			assert.True(t, d.running())
			time.Sleep(time.Nanosecond)
			assert.False(t, d.running())
			require.NoError(t, d.err)
			assert.Equal(t, 1, hooked)
			_, err := io.WriteString(d.in, "x")
			require.ErrorIs(t, err, io.ErrClosedPipe, "the input is closed")
			assert.Equal(t, []string{EventIdleTimeout, EventStopped}, d.seen()[len(d.seen())-2:])
		})
	})
	t.Run("0 is no timer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, echo, Options{})
			time.Sleep(1000 * time.Hour)
			d.send(call("1") + "\n")
			out, err := d.finish()
			require.NoError(t, err)
			assert.Equal(t, ok("1")+"\n", out)
		})
	})
	t.Run("never while a request is open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			d := drive(t, hold(release), Options{IdleTimeout: time.Minute})
			d.send(holdCall)
			time.Sleep(2*time.Hour + 10*time.Second)
			assert.True(t, d.running())
			close(release)
			time.Sleep(time.Minute - 1)
			assert.True(t, d.running(), "time counts from the end of the request")
			time.Sleep(time.Nanosecond)
			assert.False(t, d.running())
		})
	})
	t.Run("never while an answer is unwritten", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, echo, Options{IdleTimeout: time.Minute})
			d.out.set(true, nil)
			d.send(call("1") + "\n")
			time.Sleep(time.Hour)
			assert.True(t, d.running())
			d.out.set(false, nil)
			time.Sleep(time.Minute)
			assert.False(t, d.running())
			assert.Equal(t, ok("1")+"\n", d.out.String())
		})
	})
	t.Run("never while a job lives", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var jobs atomic.Bool
			jobs.Store(true)
			d := drive(t, echo, Options{IdleTimeout: time.Minute, Busy: jobs.Load})
			time.Sleep(10 * time.Hour)
			assert.True(t, d.running())
			jobs.Store(false)
			time.Sleep(time.Minute)
			assert.False(t, d.running())
		})
	})
	assert.Equal(t, 600*time.Second, DefaultOptions().IdleTimeout)
}

func TestIdleTimerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := 0
		timer := StartIdleTimer(time.Minute, nil, func() { fired++ })
		timer.Begin()
		timer.End()
		timer.Stop()
		timer.Stop()
		time.Sleep(time.Hour)
		assert.Zero(t, fired)

		StartIdleTimer(time.Minute, nil, func() { fired++ })
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, fired, "once, and without Stop it would have fired")
	})
	t.Run("while busy is asked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var timer *IdleTimer
			answer := make(chan bool)
			timer = StartIdleTimer(time.Minute, func() bool { return <-answer }, func() { t.Error("fired") })
			time.Sleep(90 * time.Second)
			stopped := make(chan struct{})
			go func() { defer close(stopped); timer.Stop() }()
			synctest.Wait()
			select {
			case <-stopped:
				t.Error("Stop did not wait for the callback")
			default:
			}
			answer <- false
			<-stopped
		})
	})
	t.Run("a message while busy is asked counts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			answer, fired := make(chan bool), 0
			timer := StartIdleTimer(time.Minute, func() bool { return <-answer }, func() { fired++ })
			time.Sleep(90 * time.Second)
			timer.Touch()
			answer <- false
			synctest.Wait()
			assert.Zero(t, fired)
			time.Sleep(time.Minute)
			answer <- false
			synctest.Wait()
			assert.Equal(t, 1, fired)
		})
	})
}

func TestServeParentWatchdog(t *testing.T) {
	eperm := os.NewSyscallError("kill", syscall.EPERM)
	esrch := os.NewSyscallError("kill", syscall.ESRCH)
	for _, c := range []struct {
		name    string
		err     error
		running bool
	}{
		{"alive", nil, true},
		{"not permitted", eperm, true},
		{"doubt", errors.New("no such process"), true},
		{"no such process", esrch, false},
		{"process done", os.ErrProcessDone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var alive, dead, pid atomic.Int64
				d := drive(t, echo, Options{Watchdog: Watchdog{
					Interval: 30 * time.Second,
					Probe:    func(p int) error { pid.Store(int64(p)); return c.err },
					OnPoll: func(ok bool) {
						if ok {
							alive.Add(1)
						} else {
							dead.Add(1)
						}
					},
				}})
				time.Sleep(30*time.Second - 1)
				assert.True(t, d.running())
				assert.Zero(t, alive.Load()+dead.Load())
				time.Sleep(time.Nanosecond)
				assert.Equal(t, c.running, d.running())
				assert.EqualValues(t, 1, alive.Load()+dead.Load())
				assert.Equal(t, c.running, alive.Load() == 1)
				assert.EqualValues(t, os.Getppid(), pid.Load(), "the real parent")
				if c.running {
					d.cancel()
					<-d.ended
					require.ErrorIs(t, d.err, context.Canceled)
					return
				}
				require.NoError(t, d.err)
				assert.Equal(t, []string{EventStarted + " idle_timeout_ms=0", EventParentExit, EventStopped}, d.seen())
			})
		})
	}
	t.Run("off unless asked for", func(t *testing.T) {
		probe := func(int) error { t.Error("polled"); return nil }
		for _, w := range []Watchdog{{Probe: probe}, {Interval: -1, Probe: probe}, {Interval: 1, PID: -1, Probe: probe}} {
			assert.False(t, w.Wait(t.Context()))
		}
	})
	t.Run("a given process, also pid 1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			got := 0
			w := Watchdog{Interval: 1, PID: 1, Probe: func(pid int) error { got = pid; return esrch }}
			assert.True(t, w.Wait(t.Context()))
			assert.Equal(t, 1, got)
		})
	})
	t.Run("open requests end at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, hold(nil), Options{Watchdog: Watchdog{Interval: time.Second, Probe: func(int) error { return esrch }}})
			d.send(holdCall)
			time.Sleep(time.Second)
			assert.False(t, d.running())
			require.NoError(t, d.err)
			assert.Empty(t, d.out.String())
		})
	})
	assert.Equal(t, 30_000*time.Millisecond, DefaultWatchdogInterval)
}

func TestServeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, echo, Options{IdleTimeout: time.Minute})
		d.send(call(`"a"`) + "\n")
		d.send(call("null") + "\n")
		d.send(`{"method":"note"}` + "\n")
		_, err := d.finish()
		require.NoError(t, err)
		assert.Equal(t, []string{
			"stdio_started idle_timeout_ms=60000",
			`request id="a" method=m`, "response is_error=false",
			"request id=null method=m", "response is_error=true",
			"request id= method=note",
			"stdio_stopped",
		}, d.seen())
	})
	t.Run("started names the directory", func(t *testing.T) {
		var cwd string
		_, err := serve(t, "", echo, Options{OnEvent: func(name string, fields ...slog.Attr) {
			if name == EventStarted {
				cwd = fields[0].Value.String()
			}
		}})
		require.NoError(t, err)
		want, err := os.Getwd()
		require.NoError(t, err)
		assert.Equal(t, want, cwd)
	})
}

func TestServeOutputErrors(t *testing.T) {
	full := errors.New("no space left")
	for _, c := range []struct {
		err, want error
	}{
		{syscall.EPIPE, nil}, {os.ErrClosed, nil}, {io.ErrClosedPipe, nil}, {full, full},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, hold(nil), Options{})
			d.send(holdCall)
			d.out.set(false, c.err)
			d.send(call("1") + "\n")
			assert.False(t, d.running(), "the loop ends and so do open requests")
			assert.Equal(t, c.want, d.err)
			events := strings.Join(d.seen()[3:], ", ")
			if c.want == nil {
				assert.Regexp(t, `^output_error error="?output closed: .*, stdio_stopped$`, events)
			} else {
				assert.Equal(t, EventStopped, events)
			}
		})
		t.Run("while draining", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				d := drive(t, hold(release), Options{})
				d.send(holdCall)
				require.NoError(t, d.in.Close())
				synctest.Wait()
				d.out.set(false, c.err)
				close(release)
				<-d.ended
				assert.Equal(t, c.want, d.err)
			})
		})
	}
	t.Run("a message of ours finds it closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, echo, Options{})
			synctest.Wait()
			d.out.set(false, io.ErrClosedPipe)
			require.ErrorIs(t, d.server.Notify("n", nil), ErrOutputClosed)
			<-d.ended
			require.NoError(t, d.err)
			require.ErrorIs(t, d.server.Notify("n", nil), ErrOutputClosed)
			assert.Equal(t, EventStopped, d.seen()[len(d.seen())-1], "nothing after the last event")
		})
	})
}

func TestServeOwnClose(t *testing.T) {
	t.Run("our own closing is no fault", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, echo, Options{IdleTimeout: time.Minute})
			time.Sleep(time.Minute)
			assert.False(t, d.running())
			require.NoError(t, d.err)
		})
	})
	t.Run("any other read error is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, echo, Options{})
			require.NoError(t, d.in.CloseWithError(errors.New("cable cut")))
			<-d.ended
			require.EqualError(t, d.err, "read input: cable cut")
		})
	})
	t.Run("an input that cannot be interrupted does not hold the end up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			in := &stubborn{make(chan struct{})}
			defer close(in.release)
			started := time.Now()
			require.NoError(t, Serve(t.Context(), in, io.Discard, echo, Options{IdleTimeout: time.Minute}))
			assert.Equal(t, time.Minute+closeGrace, time.Since(started))

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, Serve(ctx, struct{ io.Reader }{in}, io.Discard, echo, Options{}), context.DeadlineExceeded)
		})
	})
}

// stubborn is an input whose Close does not end a waiting Read, like a
// blocking terminal.
type stubborn struct{ release chan struct{} }

func (s *stubborn) Read([]byte) (int, error) { <-s.release; return 0, io.EOF }
func (s *stubborn) Close() error             { return nil }
