package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/doctor"
	"mcpagents/internal/sandbox/docker"
)

// An image that the first call pulls keeps no call from working; one that must be
// built does.
func TestLookAtImage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.47")
		body := `{}`
		switch {
		case strings.Contains(r.URL.Path, "/images/held"):
			body = `{"Id":"sha256:1","Config":{"Labels":{"mcp-agents.protocol":"1","mcp-agents.cli.version":"0.153.4\n\u001b[31mroot"}}}`
		case strings.Contains(r.URL.Path, "/images/"):
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	rt, err := docker.New("tcp://" + strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })

	for ref, want := range map[string]struct {
		state doctor.State
		text  string
	}{
		"registry.example.org/team/codex:1": {doctor.Warning, "is missing: the first call pulls it"},
		"mcp-agents/codex:none":             {doctor.Missing, "is missing: build it with"},
		"held:1":                            {doctor.OK, "held:1 with version 0.153.4��[31mroot of the CLI"},
	} {
		state, text := lookAtImage(t.Context(), rt, ref)
		assert.Equal(t, want.state, state, text)
		assert.Contains(t, text, want.text)
	}
}
