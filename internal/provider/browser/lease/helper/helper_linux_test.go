package helper

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/provider/browser/lease"
)

// enough is a time in which the test binary has started on a busy machine.
const enough = 2 * time.Second

// helperOf returns a Helper that runs the test binary as f, and what it noted.
func helperOf(t *testing.T, f fake, times Times) (*Helper, func() []string) {
	t.Helper()
	f.Log = filepath.Join(t.TempDir(), "log")
	text, err := json.Marshal(f)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	h := New(Config{Argv: []string{self, "own", "arguments"}, Times: times, Env: append(os.Environ(), variable+"="+string(text))})
	return h, func() []string {
		log, _ := os.ReadFile(f.Log)
		return strings.Split(strings.TrimSpace(string(log)), "\n")
	}
}

func TestAcquire(t *testing.T) {
	h, notes := helperOf(t, fake{Stdout: goodRecord}, Times{})
	rec, err := h.Acquire(t.Context(), request)
	require.NoError(t, err)
	assert.Equal(t, lease.Record{Session: "sess", Generation: "g 1", BrowserURL: "http://127.0.0.1:9222"}, rec)
	req := request
	req.AppPort = 3000
	_, err = h.Acquire(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"own arguments acquire --session sess --local-cdp-port 9222 --viewport 800x600 NO_COLOR=1",
		"own arguments acquire --session sess --local-cdp-port 9222 --viewport 800x600 --app-port 3000 NO_COLOR=1"}, notes())
}

func TestAcquireThatFails(t *testing.T) {
	record := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(goodRecord)
	}
	long := strings.Repeat("é", 3000)
	for _, c := range []struct {
		name       string
		fake       fake
		text       string // of the error
		generation string // of a lease that exists all the same
	}{
		{"232 no words", fake{Exit: 70}, "lease helper exited with code 70", ""},
		{"its own words", fake{Exit: 1, Stderr: "  broken \n"}, "broken", ""},
		{"many words", fake{Exit: 1, Stderr: long}, strings.Repeat("é", 2000), ""},
		{"237 malformed", fake{Stdout: "hello\n=x\n"}, "malformed or mismatched ready record", ""},
		{"238 another port", fake{Stdout: record("local_cdp_port=$port", "local_cdp_port=1")}, "malformed or mismatched ready record", "g 1"},
		{"another address", fake{Stdout: record("127.0.0.1", "localhost")}, "malformed or mismatched ready record", "g 1"},
		{"another version", fake{Stdout: record("version=1", "version=2")}, "malformed or mismatched ready record", "g 1"},
		{"not ready", fake{Stdout: record("=ready", "= ready")}, "malformed or mismatched ready record", "g 1"},
		{"239 a name twice", fake{Stdout: goodRecord + "__proto__=1\r__proto__=2"}, "duplicate browser lease record key: __proto__", "g 1"},
		{"two generations", fake{Stdout: goodRecord + "generation=g2\n"}, "duplicate browser lease record key: generation", ""},
		{"271 too much output", fake{Flood: maxOutput + 1, Stdout: goodRecord}, "wrote more than 10 MiB", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := helperOf(t, c.fake, Times{})
			rec, err := h.Acquire(t.Context(), request)
			failed, ok := errors.AsType[*lease.ProvisioningError](err)
			require.True(t, ok, "%v", err)
			assert.Contains(t, failed.Text, c.text)
			assert.LessOrEqual(t, len([]rune(failed.Text)), 2000)
			assert.Equal(t, c.generation, rec.Generation)
		})
	}
	t.Run("the port was taken", func(t *testing.T) {
		h, _ := helperOf(t, fake{Exit: 75, Stdout: goodRecord}, Times{})
		_, err := h.Acquire(t.Context(), request)
		require.ErrorIs(t, err, lease.ErrPortTaken)
	})
	t.Run("no such program", func(t *testing.T) {
		h := New(Config{Argv: []string{filepath.Join(t.TempDir(), "none")}})
		_, err := h.Acquire(t.Context(), request)
		require.ErrorContains(t, err, "could not be started")
	})
}

func TestNothingToLend(t *testing.T) {
	for _, c := range []struct {
		name  string
		fake  fake
		cause lease.Cause
		text  string
	}{
		{"229 no words", fake{Exit: 69}, lease.NoBox, "GUI not verified — no browser box available"},
		{"229 words", fake{Exit: 69, Stdout: "x", Stderr: " all busy\n"}, lease.NoBox, "GUI not verified — no browser box available\nLease helper: all busy"},
		{"230 the dev server", fake{Exit: 69, Stdout: "checking\n  GUI not verified: dev server not reachable at :3000 \n", Stderr: "GUI not verified: MinIO unreachable"},
			lease.DevServer, "GUI not verified: dev server not reachable at :3000"},
		{"231 the store", fake{Exit: 69, Stderr: "x\nGUI not verified - minio NOT REACHABLE\n"}, lease.MinIO, "GUI not verified - minio NOT REACHABLE"},
		{"only one of the words", fake{Exit: 69, Stderr: "dev server not reachable"}, lease.NoBox,
			"GUI not verified — no browser box available\nLease helper: dev server not reachable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := helperOf(t, c.fake, Times{})
			_, err := h.Acquire(t.Context(), request)
			none, ok := errors.AsType[*lease.UnavailableError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, c.cause, none.Cause)
			assert.Equal(t, c.text, none.Text)
		})
	}
}

func TestHelperThatHangs(t *testing.T) {
	short := Times{Acquire: enough, TermGrace: enough}
	t.Run("259 it hears of its timeout", func(t *testing.T) {
		t.Parallel()
		h, notes := helperOf(t, fake{Hang: true, Exit: 69}, Times{Acquire: enough})
		_, err := h.Acquire(t.Context(), request)
		require.ErrorContains(t, err, "timed out")
		assert.Equal(t, "TERM", notes()[1])
	})
	t.Run("what it got all the same is said", func(t *testing.T) {
		t.Parallel()
		h, _ := helperOf(t, fake{Hang: true, OnTerm: goodRecord}, short)
		rec, err := h.Acquire(t.Context(), request)
		require.ErrorContains(t, err, "timed out")
		assert.Equal(t, "g 1", rec.Generation)
	})
	t.Run("260 it is killed with what it started", func(t *testing.T) {
		t.Parallel()
		h, notes := helperOf(t, fake{Hang: true, Deaf: true, Child: true}, short)
		start := time.Now()
		_, err := h.Acquire(t.Context(), request)
		require.ErrorContains(t, err, "timed out")
		assert.GreaterOrEqual(t, time.Since(start), 2*enough)
		requireGone(t, notes())
	})
	t.Run("258 the front end ends", func(t *testing.T) {
		t.Parallel()
		h, notes := helperOf(t, fake{Hang: true, Exit: 1}, Times{})
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(enough, cancel)
		defer stop.Stop()
		_, err := h.Acquire(ctx, request)
		require.ErrorContains(t, err, "this server is ending")
		assert.Equal(t, "TERM", notes()[1])
		_, err = h.Acquire(ctx, request)
		require.ErrorContains(t, err, "was not started")
		assert.Len(t, notes(), 2)
	})
	t.Run("274 a release at the end has its own limit", func(t *testing.T) {
		t.Parallel()
		h, notes := helperOf(t, fake{Hang: true}, Times{ReleaseShutdown: enough})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it is made whatever ends
		err := h.Release(ctx, lease.Record{Session: "s", Generation: "g"}, lease.Shutdown)
		require.ErrorContains(t, err, "timed out")
		assert.Equal(t, []string{"own arguments release --session s --generation g --reason shutdown NO_COLOR=1", "TERM"}, notes())
	})
	t.Run("261 its time follows from the deadline", func(t *testing.T) {
		assert.Equal(t, time.Second, AcquireTime(18*time.Second))
		assert.Equal(t, time.Second, AcquireTime(19*time.Second))
		assert.Equal(t, 582*time.Second, AcquireTime(600*time.Second))
		h := New(Config{Argv: []string{"x"}})
		assert.Equal(t, Times{582 * time.Second, 582 * time.Second, time.Minute, 15 * time.Second, 30 * time.Second}, h.cfg.Times)
	})
}

// requireGone asserts that the child that the helper left has ended.
func requireGone(t *testing.T, notes []string) {
	t.Helper()
	pid := 0
	for _, n := range notes {
		if after, ok := strings.CutPrefix(n, "child "); ok {
			pid, _ = strconv.Atoi(after)
		}
	}
	require.NotZero(t, pid)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ") // nobody here reaps it
	}, 5*time.Second, 10*time.Millisecond)
}

// A tunnel that a helper leaves running may have its outputs.
func TestHelperThatLeavesAChild(t *testing.T) {
	h, notes := helperOf(t, fake{Child: true, Stdout: goodRecord}, Times{})
	rec, err := h.Acquire(t.Context(), request)
	require.NoError(t, err)
	assert.Equal(t, "g 1", rec.Generation)
	pid, _ := strconv.Atoi(strings.TrimPrefix(notes()[1], "child "))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL), "it lives: the lease may need it")
}

func TestStatusAndRelease(t *testing.T) {
	rec := lease.Record{Session: "s", Generation: "g"}
	for _, c := range []struct {
		name  string
		fake  fake
		state lease.State
		err   string
		times Times
	}{
		{"262 it stands", fake{}, lease.Live, "", Times{}}, {"264 it is gone", fake{Exit: 69, Stderr: "x"}, lease.Lost, "", Times{}},
		{"263 nobody knows", fake{Exit: 70, Stderr: "corrupt"}, lease.Unknown, "corrupt", Times{}},
		{"timeout", fake{Hang: true}, lease.Unknown, "timed out", Times{Status: enough}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, notes := helperOf(t, c.fake, c.times)
			state, err := h.Status(t.Context(), rec)
			assert.Equal(t, c.state, state)
			assert.Equal(t, c.err == "", err == nil)
			if err != nil {
				assert.Contains(t, err.Error(), c.err)
			}
			assert.Equal(t, "own arguments status --session s --generation g NO_COLOR=1", notes()[0])
		})
	}
	for _, c := range []struct {
		name string
		fake fake
		err  string
	}{{"269 no such lease", fake{Exit: 69, Stderr: " gone\n"}, "exit 69: gone"}, {"270 no words", fake{Exit: 70}, "exit 70"}} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := helperOf(t, c.fake, Times{})
			require.EqualError(t, h.Release(t.Context(), rec, lease.Idle), c.err)
		})
	}
	h, notes := helperOf(t, fake{}, Times{})
	require.NoError(t, h.Release(t.Context(), rec, lease.Idle))
	assert.Equal(t, "own arguments release --session s --generation g --reason idle NO_COLOR=1", notes()[0])
}

func TestIdentity(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	h := New(Config{Argv: []string{"x"}})
	read := func() (string, error) { return h.Identity(t.Context(), lease.Record{BrowserURL: server.URL}) }
	answer = func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/json/version", r.URL.Path)
		_, _ = w.Write([]byte(`{"Browser":"x","webSocketDebuggerUrl":"ws://127.0.0.1:1/devtools/browser/abc-1"}`))
	}
	id, err := read()
	require.NoError(t, err)
	assert.Equal(t, "abc-1", id)
	for name, a := range map[string]http.HandlerFunc{
		"HTTP status 500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"HTTP status 302": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"not JSON":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"names no webSocketDebugger": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"websocketdebuggerurl":"ws://x/devtools/browser/abc"}`))
		},
		"more than 10 MiB": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 10<<20+1)) },
	} {
		answer = a
		_, err := read()
		require.ErrorContains(t, err, name)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = h.Identity(ctx, lease.Record{BrowserURL: "http://" + l.Addr().String()})
	require.ErrorContains(t, err, "did not answer")
}
