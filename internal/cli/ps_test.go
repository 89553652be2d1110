package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/sandbox"
)

func TestListedSandboxes(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	list := func() []sandbox.Listed {
		return []sandbox.Listed{
			{ID: "0123456789abcdef", Provider: "codex", State: "running", User: "1000:1000", Instance: "17", Image: "i:1", Created: now.Add(-90 * time.Second)},
			{ID: "77", State: "running", User: "10:10"},
			{ID: "fedcba", Provider: "claude", State: "created", User: "1000:50", Created: now.Add(-time.Hour)},
		}
	}
	assert.Len(t, ofUser(list(), 0), 3, "root")
	assert.Len(t, ofUser(list(), -1), 3, "a system without uids")
	assert.Empty(t, ofUser(list(), 100))
	mine := ofUser(list(), 1000)
	require.Len(t, mine, 2)
	var out bytes.Buffer
	require.NoError(t, writeSandboxes(&out, mine, now))
	assert.Equal(t, "ID            PROVIDER  STATE    AGE             USER       FRONT END  IMAGE\n"+
		"fedcba        claude    created  About an hour   1000:50               \n"+
		"0123456789ab  codex     running  About a minute  1000:1000  17         i:1\n", out.String())
}

// What others wrote into labels makes no row and reaches no terminal.
func TestListedSandboxesOfOthers(t *testing.T) {
	var out bytes.Buffer
	evil := "x\n77\tcodex\x1b[2J"
	list := []sandbox.Listed{{ID: "1", Provider: evil, State: evil, User: evil, Instance: evil, Image: evil}}
	require.NoError(t, writeSandboxes(&out, list, time.Now()))
	assert.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
	assert.Equal(t, 5, strings.Count(out.String(), "x\ufffd77\ufffdcodex\ufffd[2J"), out.String())
	assert.NotContains(t, out.String(), "\x1b")
}
