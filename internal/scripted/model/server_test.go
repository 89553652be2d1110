package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fixture is a server whose waits end at once and are written down, with a
// client of its own.
type fixture struct {
	*Server
	client *http.Client
	mu     sync.Mutex
	waits  []string
}

type response struct {
	status int
	header http.Header
	body   string
}

func startFixture(t *testing.T, opts Options) *fixture {
	t.Helper()
	f := &fixture{client: &http.Client{Transport: &http.Transport{}}}
	s, err := start(t.Context(), opts, func(_ context.Context, d time.Duration) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waits = append(f.waits, d.String())
		return nil
	})
	require.NoError(t, err)
	f.Server = s
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		f.client.CloseIdleConnections()
	})
	return f
}

func (f *fixture) slept() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits
}

func (f *fixture) do(t *testing.T, method, path, body string, headers ...string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+f.Addr()+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return response{resp.StatusCode, resp.Header, string(got)}
}

func (f *fixture) post(t *testing.T, path, body string, headers ...string) response {
	t.Helper()
	return f.do(t, http.MethodPost, path, body, headers...)
}

func TestRoutes(t *testing.T) {
	f := startFixture(t, Options{})
	tests := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		want                     string
	}{
		{"websocket", "GET", "/v1/responses", "", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 426, "no WebSocket"},
		{"models", "GET", "/v1/models", "", nil, 200, `{"data":[],"models":[]}`},
		{"any base", "POST", "/gateway/openai/v1/responses", request(classicTools, "hi"), nil, 200, "event: response.completed"},
		{"unknown path", "POST", "/v1/chat/completions", "{}", nil, 404, "has no POST /v1/chat/completions"},
		{"unknown method", "GET", "/v1/responses", "", nil, 404, "has no GET"},
		{"not json", "POST", "/v1/responses", "hi", nil, 400, "not a Responses API request"},
		{"zstd", "POST", "/v1/responses", "\x28\xb5\x2f\xfd", []string{"Content-Encoding", "zstd"}, 400, "is compressed"},
		{"gzip", "POST", "/v1/responses", "\x1f\x8b", []string{"Content-Encoding", "gzip"}, 400, "turn request compression off"},
		{"identity", "POST", "/v1/responses", request(classicTools, "hi"), []string{"Content-Encoding", "identity"}, 200, "response.completed"},
		{"too large", "POST", "/v1/responses", strings.Repeat(" ", maxRequestBytes+1), nil, 413, "over 33554432 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := f.do(t, tt.method, tt.path, tt.body, tt.headers...)
			assert.Equal(t, tt.status, resp.status)
			assert.Contains(t, resp.body, tt.want)
		})
	}
	assert.Equal(t, Stats{Requests: 10, Model: 3, Completed: 2, Refused: 6, WebSocket: 1}, f.Stats())

	var stats Stats
	resp := f.do(t, "GET", "/mcp-agents/stats", "")
	require.NoError(t, json.Unmarshal([]byte(resp.body), &stats))
	assert.Equal(t, f.Stats(), stats, "asking for the stats is not counted")
}

func TestListensOnLoopbackOnly(t *testing.T) {
	f := startFixture(t, Options{})
	host, port, err := net.SplitHostPort(f.Addr())
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", host)
	assert.Equal(t, "http://127.0.0.1:"+port+"/v1", f.BaseURL())

	_, err = Start(t.Context(), Options{Port: f.listener.Addr().(*net.TCPAddr).Port})
	require.ErrorContains(t, err, "scripted model: listen tcp 127.0.0.1:"+port)
}

func TestKey(t *testing.T) {
	f := startFixture(t, Options{Key: "right"})
	for auth, want := range map[string]int{"": 401, "Bearer wrong": 401, "right": 401, "Bearer right2": 401, "Bearer right": 200} {
		resp := f.post(t, "/v1/responses", request(classicTools, "hi"), "Authorization", auth)
		assert.Equal(t, want, resp.status, "%q", auth)
		assert.NotContains(t, resp.body, "right", "an answer never repeats the key")
	}
	assert.Equal(t, int64(4), f.Stats().Unauthorized)
	assert.Equal(t, 200, f.do(t, "GET", "/mcp-agents/stats", "").status, "stats need no key")

	open := startFixture(t, Options{})
	assert.Equal(t, 200, open.post(t, "/v1/responses", request(classicTools, "hi"), "Authorization", "Bearer wrong").status)
}

func TestRequestLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "requests.jsonl")
	f := startFixture(t, Options{LogFile: file})
	f.post(t, "/v1/responses", request(classicTools, "a prompt"), "Authorization", "Bearer sk-secret", "X-Test", "seen")
	f.post(t, "/v1/responses", "no json")
	require.NoError(t, f.Close())

	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(data), "sk-secret")
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	require.Len(t, lines, 2)
	var entry logEntry
	require.NoError(t, json.Unmarshal(lines[0], &entry))
	assert.Equal(t, "/v1/responses", entry.Path)
	assert.Equal(t, "seen", entry.Header.Get("X-Test"))
	assert.Contains(t, string(entry.Body), "a prompt")
	require.NoError(t, json.Unmarshal(lines[1], &entry))
	assert.Equal(t, len("no json"), entry.BodyBytes)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	_, err = Start(t.Context(), Options{LogFile: filepath.Join(file, "below-a-file")})
	require.ErrorContains(t, err, "request log")
}

// TestConcurrentTurns drives many threads through one server at once: none
// sees the step or the text of another.
func TestConcurrentTurns(t *testing.T) {
	f := startFixture(t, Options{})
	const threads, steps = 16, 4
	var wg sync.WaitGroup
	for id := range threads {
		wg.Go(func() {
			prompt := ""
			for i := range steps {
				prompt += fmt.Sprintf("[[exec: thread-%d-step-%d]]", id, i)
			}
			tools := []string{codeModeTools, classicTools}[id%2]
			var outputs []string
			for i := range steps {
				item := lastItem(t, f.post(t, "/v1/responses", request(tools, prompt, outputs...)).body)
				assert.Contains(t, item.Input+item.Arguments, fmt.Sprintf("thread-%d-step-%d", id, i))
				outputs = append(outputs, fmt.Sprintf("output %d of %d", i, id))
			}
			item := lastItem(t, f.post(t, "/v1/responses", request(tools, prompt, outputs...)).body)
			assert.Equal(t, fmt.Sprintf("OK from the scripted model; last tool output: output 3 of %d", id), item.Content[0].Text)
		})
	}
	wg.Wait()
	assert.Equal(t, int64(threads*(steps+1)), f.Stats().Completed)
	assert.Zero(t, f.Stats().Open)
}

// stalled opens a response that never ends and returns it after its first event.
func (f *fixture) stalled(t *testing.T, ctx context.Context) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.BaseURL()+"/responses", strings.NewReader(request(classicTools, "[[hang]]")))
	require.NoError(t, err)
	resp, err := f.client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "event: response.created\n", line)
	return resp
}

func TestClientLeavesDuringStall(t *testing.T) {
	f := startFixture(t, Options{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	f.stalled(t, ctx)
	assert.Equal(t, int64(1), f.Stats().Open, "the stall lasts while the client stays")
	leave()
	require.Eventually(t, func() bool { return f.Stats().Open == 0 }, 5*time.Second, time.Millisecond)
	assert.Equal(t, int64(1), f.Stats().Disconnected)
	assert.Zero(t, f.Stats().Completed)
}

func TestEndsDuringStall(t *testing.T) {
	t.Run("by Close", func(t *testing.T) {
		f := startFixture(t, Options{})
		resp := f.stalled(t, t.Context())
		require.NoError(t, f.Close())
		// Whether the stream breaks or ends cleanly is up to the timing; it
		// never looks complete. An error is therefore fine here.
		rest, _ := io.ReadAll(resp.Body)
		assert.NotContains(t, string(rest), "response.completed")
		assert.Zero(t, f.Stats().Open)
		require.NoError(t, f.Close(), "closing twice is fine")
	})
	t.Run("by its context", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s, err := Start(ctx, Options{})
		require.NoError(t, err)
		f := &fixture{Server: s, client: &http.Client{Transport: &http.Transport{}}}
		defer f.client.CloseIdleConnections()
		f.stalled(t, t.Context())
		stop()
		<-s.Done()
		require.NoError(t, s.Close())
		assert.Zero(t, s.Stats().Open)
	})
}

// TestCloseWithClientThatDoesNotRead: a handler blocked in a write must not
// hold up Close.
func TestCloseWithClientThatDoesNotRead(t *testing.T) {
	f := startFixture(t, Options{})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.Addr())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096)) // keeps the answer that overfills it small
	body := request(classicTools, fmt.Sprintf("[[megabyte: %d]]", 8<<20))
	_, err = fmt.Fprintf(conn, "POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1)) // the response has begun
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Zero(t, f.Stats().Open)
	assert.Zero(t, f.Stats().Completed)
}

func TestSleepEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, sleep(ctx, time.Hour), context.Canceled)
	require.NoError(t, sleep(t.Context(), 0))
}
