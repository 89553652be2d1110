package cli

import (
	"bytes"
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
