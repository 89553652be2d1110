package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// requestLog appends one JSON object a request to a file. It holds whole
// prompts, so it exists only where a caller asks for it; keys never enter it.
type requestLog struct {
	mu   sync.Mutex
	file *os.File
}

type logEntry struct {
	Time   time.Time       `json:"time"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Header http.Header     `json:"header"`
	Body   json.RawMessage `json:"body,omitempty"`
	// BodyBytes is the size of the body, also where it is no JSON.
	BodyBytes int `json:"body_bytes"`
}

func openRequestLog(path string) (*requestLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("request log: %w", err)
	}
	return &requestLog{file: file}, nil
}

// write logs a request; body is nil for one that has none. A nil log does nothing.
func (l *requestLog) write(r *http.Request, body []byte) error {
	if l == nil {
		return nil
	}
	entry := logEntry{Time: time.Now().UTC(), Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), BodyBytes: len(body)}
	for _, secret := range []string{"Authorization", "X-Api-Key", "Cookie"} {
		if entry.Header.Get(secret) != "" {
			entry.Header.Set(secret, "(hidden)")
		}
	}
	if json.Valid(body) {
		entry.Body = body
	}
	line, err := encodeJSON(entry)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("request log: %w", err)
	}
	return nil
}

func (l *requestLog) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
