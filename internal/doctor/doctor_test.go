package doctor

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func look(state State, text string) func(context.Context) (State, string) {
	return func(context.Context) (State, string) { return state, text }
}

func TestRun(t *testing.T) {
	asked := false
	results := Run(t.Context(), []Check{
		{Name: "engine", Look: look(Failed, "no engine: start it")},
		{Name: "image", Needs: "engine", Look: func(context.Context) (State, string) { asked = true; return OK, "" }},
		{Name: "layer", Needs: "image", Look: look(OK, "")},
		{Name: "login", Look: look(Warning, "two\nlines")},
		{Name: "workspace", Needs: "login", Look: look(OK, "fine")},
	})
	assert.False(t, asked, "what cannot be known is not asked for")
	assert.False(t, Healthy(results))
	var out bytes.Buffer
	require.NoError(t, Write(&out, results, false))
	assert.Equal(t, "failed   engine     no engine: start it\n"+
		"skip     image      look again when this is right: engine\n"+
		"skip     layer      look again when this is right: image\n"+
		"warning  login      two; lines\n"+
		"ok       workspace  fine\n", out.String())
	assert.True(t, Healthy(results[3:]), "a warning keeps nothing from working")
	out.Reset()
	require.NoError(t, Write(&out, results[:1], true))
	assert.JSONEq(t, `[{"name":"engine","state":"failed","text":"no engine: start it"}]`, out.String())
}
