package model

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxRequestBytes bounds a request body; Codex sends about 50 KB, and a
	// thread that holds a megabyte answer sends it back each time.
	maxRequestBytes = 32 << 20
	// requestReadTime bounds how long a client may take to send a request.
	requestReadTime = 30 * time.Second
	statsPath       = "/mcp-agents/stats"
)

// Options are the settings of a server; the zero value serves the standard
// answer on a free port without a key.
type Options struct {
	// Port on 127.0.0.1, the only address that is ever listened on; 0 takes a free one.
	Port int
	// Scenario is the script for prompts without directives; nil is the standard answer.
	Scenario *Scenario
	// Key is what requests must carry, as bearer or in X-Api-Key; "" accepts any.
	Key string
	// LogFile receives every request as one line of JSON, prompts included;
	// "" logs nothing.
	LogFile string
	// Logger receives the server's own warnings; nil discards them.
	Logger *slog.Logger
}

// Server is a running scripted model. It ends with the context it was started
// with, or by Close.
type Server struct {
	scenario *Scenario
	key      string
	log      *requestLog
	logger   *slog.Logger
	sleep    func(context.Context, time.Duration) error
	stats    counters

	listener net.Listener
	http     *http.Server
	stop     context.CancelFunc
	done     chan struct{}
	err      error // set before done is closed

	mu       sync.Mutex // guards closed and the Add of handlers
	closed   bool
	handlers sync.WaitGroup
}

// Start listens and serves until ctx ends or Close is called. The server
// accepts connections when Start returns.
func Start(ctx context.Context, opts Options) (*Server, error) {
	return start(ctx, opts, sleep)
}

func start(ctx context.Context, opts Options, sleep func(context.Context, time.Duration) error) (*Server, error) {
	s := &Server{scenario: opts.Scenario, key: opts.Key, logger: opts.Logger, sleep: sleep, done: make(chan struct{})}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	var err error
	if opts.LogFile != "" {
		if s.log, err = openRequestLog(opts.LogFile); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	s.listener, err = lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.Port)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("scripted model: %w", err), s.log.close())
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout: requestReadTime,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	go s.run(ctx)
	return s, nil
}

// run owns every goroutine of the server and ends after all of them.
func (s *Server) run(ctx context.Context) {
	defer close(s.done)
	var serveErr error
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveErr = s.http.Serve(s.listener)
	}()
	select {
	case <-ctx.Done():
	case <-served: // the listener failed
	}
	s.stop() // ends handlers that wait
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	closeErr := s.http.Close() // ends handlers that write to a client that does not read
	<-served
	s.handlers.Wait()
	if errors.Is(serveErr, http.ErrServerClosed) {
		serveErr = nil
	}
	s.err = errors.Join(serveErr, closeErr, s.log.close())
}

// Close ends the server and waits until nothing of it runs. It may be called
// more than once.
func (s *Server) Close() error {
	s.stop()
	<-s.done
	return s.err
}

// Done is closed when the server has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Addr is the address it listens on, 127.0.0.1:PORT.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// BaseURL is what a CLI takes as its base address of the OpenAI API.
func (s *Server) BaseURL() string { return "http://" + s.Addr() + "/v1" }

// Stats returns the counts so far.
func (s *Server) Stats() Stats { return s.stats.snapshot() }

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.handlers.Add(1)
	s.mu.Unlock()
	defer s.handlers.Done()
	s.route(w, r)
}

// route is the order of checks for every request. A further model API is a
// further case at its end.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == statsPath {
		writeJSON(w, http.StatusOK, s.stats.snapshot())
		return
	}
	s.stats.requests.Add(1)
	body, ok := s.readBody(w, r)
	if !ok {
		return
	}
	if err := s.log.write(r, body); err != nil {
		s.logger.Warn("scripted model cannot write its request log", "error", err)
	}
	switch {
	case r.Method == http.MethodGet && r.Header.Get("Upgrade") != "":
		// Codex tries a WebSocket first and falls back to POST on this code only.
		s.stats.webSocket.Add(1)
		writeError(w, http.StatusUpgradeRequired, "the scripted model speaks no WebSocket", "")
	case !s.authorized(r):
		s.stats.unauthorized.Add(1)
		if isMessages(r) {
			writeMessagesError(w, http.StatusUnauthorized, "invalid x-api-key")
			return
		}
		writeError(w, http.StatusUnauthorized, "Incorrect API key", "invalid_api_key")
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		writeJSON(w, http.StatusOK, map[string][]string{"models": {}, "data": {}})
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses"):
		s.stats.model.Add(1)
		s.stats.open.Add(1)
		defer s.stats.open.Add(-1)
		s.handleResponses(w, r, body)
	case isCountTokens(r):
		countTokens(w, body)
	case isMessages(r):
		s.stats.model.Add(1)
		s.stats.open.Add(1)
		defer s.stats.open.Add(-1)
		s.handleMessages(w, r, body)
	default:
		s.refuse(w, http.StatusNotFound, fmt.Sprintf("the scripted model has no %s %s", r.Method, r.URL.Path))
	}
}

// readBody reads the whole body; where it cannot, it has answered. Only after
// a whole body does net/http notice that a client leaves.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		s.refuse(w, http.StatusBadRequest, fmt.Sprintf(
			"the request body is compressed (%q); the scripted model reads plain JSON: turn request compression off in the client", enc))
		return nil, false
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(requestReadTime)); err != nil {
		s.logger.Debug("scripted model cannot bound a read", "error", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		s.refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is over %d bytes", tooLarge.Limit))
		return nil, false
	case err != nil:
		s.refuse(w, http.StatusBadRequest, "the request body cannot be read to its end")
		return nil, false
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		s.logger.Debug("scripted model cannot clear a read limit", "error", err)
	}
	return body, true
}

func (s *Server) authorized(r *http.Request) bool {
	if s.key == "" {
		return true
	}
	got, want := r.Header.Get("Authorization"), "Bearer "+s.key
	if key := r.Header.Get("X-Api-Key"); key != "" {
		got = "Bearer " + key
	}
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

func (s *Server) refuse(w http.ResponseWriter, code int, message string) {
	s.stats.refused.Add(1)
	writeError(w, code, message, "")
}
