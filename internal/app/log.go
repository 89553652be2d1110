package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"mcpagents/internal/config"
)

// NewLogger returns the logger of the process. Its text form is
// "[mcp-agents] <message>", with attributes in parentheses: users and scripts
// look for these lines.
func NewLogger(w io.Writer, level slog.Level, format config.LogFormat) *slog.Logger {
	if format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(&lineHandler{out: &lineWriter{w: w}, level: level})
}

// lineWriter writes whole lines.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// lineHandler writes records as single lines.
type lineHandler struct {
	out   *lineWriter
	level slog.Level
	attrs []slog.Attr
}

func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...)
	return &c
}

// WithGroup is not used by this program; groups are flattened.
func (h *lineHandler) WithGroup(string) slog.Handler { return h }

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	if !strings.HasPrefix(r.Message, "[codex]") && !strings.HasPrefix(r.Message, "[chrome-devtools]") {
		b.WriteString("[mcp-agents] ")
	}
	b.WriteString(r.Message)
	var parts []string
	add := func(a slog.Attr) bool {
		parts = append(parts, fmt.Sprintf("%s=%v", a.Key, a.Value))
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	if len(parts) > 0 {
		b.WriteString(" (" + strings.Join(parts, ", ") + ")")
	}
	line := strings.NewReplacer("\n", " ", "\r", " ").Replace(b.String()) + "\n"
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, line)
	return err
}
