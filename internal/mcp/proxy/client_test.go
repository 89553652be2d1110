package proxy

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
)

func TestReadClient(t *testing.T) {
	events := make(chan ClientEvent)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ReadClient(t.Context(), strings.NewReader("{\"a\":1}\n\n"+strings.Repeat("x", 100)+"\n{\"last\":1}"), 64, events)
	}()
	first := <-events
	assert.Equal(t, `{"a":1}`, string(first.Message.Raw))
	assert.True(t, (<-events).Message.Blank(), "blank lines pass")
	_, one := errors.AsType[*mcp.MessageError]((<-events).Err)
	assert.True(t, one, "a long message fails alone")
	last := <-events
	assert.Equal(t, `{"last":1}`, string(Line(last.Message, last.Message.Raw)), "it had no line feed")
	assert.Equal(t, "{\"last\":1}\n", string(WholeLine(last.Message)))
	require.ErrorIs(t, (<-events).Err, io.EOF)
	<-done
}

func TestReadClientEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ReadClient(ctx, strings.NewReader("{}\n"), 0, make(chan ClientEvent)) // returns
	r, _ := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ReadClient(t.Context(), r, 0, make(chan ClientEvent, 1))
	}()
	Abandon(done, r)
	<-done
}

func TestLineOfAFrame(t *testing.T) {
	m := mcp.Message{Raw: []byte("{\r\n\"a\":1}"), Mode: mcp.Framed, Terminated: true}
	assert.Equal(t, "{  \"a\":1}\n", string(Line(m, m.Raw)))
	assert.Equal(t, "{\r\n\"a\":1}", string(m.Raw))
}
