package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/sandbox/wire"
)

func TestEnding(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    Ending
		code   int
		reason string
	}{
		{"by itself", Ending{Exit: wire.Exit{Code: 3, Reason: wire.ReasonExit}}, 3, "cli exited with code 3"},
		{"as its user wants", Ending{Exit: wire.Exit{Code: 143, Signal: 15, Reason: wire.ReasonSignal}}, 143, "cli killed by SIG"},
		{"by a fault", Ending{Exit: wire.Exit{Code: 139, Signal: 11, Reason: wire.ReasonSignal}}, 128, "cli killed by SIG"},
		{"memory", Ending{Exit: wire.Exit{Code: 137, Signal: 9, Reason: wire.ReasonMemory}}, 137,
			"cli was killed because its sandbox ran out of memory; raise --memory"},
		{"lifetime", Ending{Exit: wire.Exit{Code: 143, Signal: 15, Reason: wire.ReasonLifetime}}, 143, "cli reached the lifetime of its sandbox"},
		{"no start", Ending{Exit: wire.Exit{Code: 127, Reason: wire.ReasonSpawnFailed, Text: "no such file"}}, 127,
			"cli could not be started: no such file"},
		{"lost", Ending{Err: errors.New("engine is gone")}, 1, "the sandbox of cli was lost: engine is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.code, tt.end.Code())
			assert.Equal(t, tt.reason, tt.end.Reason("cli", "SIG"))
		})
	}
}

func TestOutcomes(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	assert.Equal(t, Outcome{Code: 143, Reason: "signal 15"}, Stopped(stdio.Signal(15)))
	assert.Equal(t, Outcome{Code: 1, Reason: "over"}, Stopped(errors.New("over")))
	assert.Equal(t, Outcome{Reason: "client closed its input"}, OutputFailed(fmt.Errorf("write: %w", stdio.ErrOutputClosed), log))
	assert.Empty(t, said.String(), "a client may leave")
	assert.Equal(t, Outcome{Code: 1, Reason: "output error"}, OutputFailed(errors.New("no space"), log))
	assert.Contains(t, said.String(), "no space")
}
