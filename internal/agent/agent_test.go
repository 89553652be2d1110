package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThreadsForgetTheLeastUsed(t *testing.T) {
	var threads Threads
	for i := range maxThreads {
		threads.Remember(fmt.Sprint(i), "/"+fmt.Sprint(i), "read-only")
	}
	_, _, ok := threads.Find("0") // used again
	require.True(t, ok)
	threads.Remember("new", "/new", "read-only")
	_, _, ok = threads.Find("1")
	assert.False(t, ok)
	cwd, sandbox, ok := threads.Find("0")
	assert.Equal(t, []any{"/0", "read-only", true}, []any{cwd, sandbox, ok})
	assert.Len(t, threads.places, maxThreads)
}

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Ledger{Agent: "codex"}
		assert.Empty(t, l.Rest())
		a := &Record{Tool: "codex", Thread: "T", Sandbox: "read-only"}
		assert.Equal(t, "WARNING codex turn abandoned while possibly still running: request 3 (idle timeout (2s)); thread_id=T job_id=none "+
			"sandbox_mode=read-only; codex was NOT confirmed stopped, so it may still write to the workspace", l.Abandon("number:3", "3", "idle timeout (2s)", a))
		l.Abandon("k", `"k"`, "x", &Record{Tool: "codex-reply", Job: "J"})
		assert.Same(t, a, l.Find("number:3"))
		assert.Equal(t, "2 abandoned codex turn(s) were still unaccounted for at teardown: codex thread_id=T job_id=none; codex-reply thread_id=none job_id=J", l.Rest())
		time.Sleep(7 * time.Second)
		assert.Equal(t, "abandoned codex turn finished after 7s (thread_id=T job_id=none)", l.Settle("number:3"))
		assert.Empty(t, l.Settle("number:3"))
		assert.Nil(t, l.Find("number:3"))
		assert.Equal(t, 1, l.Count())
	})
}

func TestPeekOrder(t *testing.T) {
	now := time.Now()
	p := Look([]*Record{{Request: "b", Started: now, Active: now}, {Request: "a", Started: now, Active: now}, {Request: "c", Started: now.Add(-time.Minute), Active: now}}, Filter{}, 0)
	assert.Equal(t, []string{"c", "a", "b"}, []string{p.Turns[0].RequestID, p.Turns[1].RequestID, p.Turns[2].RequestID})
	assert.False(t, p.Ambiguous, "only a filter can be ambiguous")
	assert.Equal(t, "/", bare("///"[:1]))
}

func TestRecordFollowsCommands(t *testing.T) {
	var r Record
	for _, e := range []Event{{Kind: CommandEnded, Command: "never began"}, {Kind: CommandStarted, Command: "a"}, {Kind: CommandStarted, Command: "b"}, {Kind: CommandEnded, Command: "a"}, {}} {
		r.Note(e)
	}
	assert.Equal(t, map[string]struct{}{"b": {}}, r.Commands)
	assert.False(t, r.Active.IsZero())
}
