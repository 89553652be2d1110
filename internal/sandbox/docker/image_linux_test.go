package docker

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// buildLog is what an engine says of a build.
const buildLog = `{"stream":"Step 1/2 : FROM ${BASE}"}
{"stream":"\n"}
{"status":"Pulling from library/debian","id":"bookworm"}
{"stream":" ---> 0123456789ab\n"}
{"stream":"Step 2/2 : RUN set -eu;     false\n ---> Running in 0123456789ab\n"}
{"stream":"first line\nsecond line\n"}
`

func TestFollowBuild(t *testing.T) {
	var said []string
	say := func(line string) { said = append(said, line) }
	tail, err := followBuild(strings.NewReader(buildLog), say)
	require.NoError(t, err)
	assert.Equal(t, []string{"1/2 : FROM ${BASE}", "pulling from library/debian", "2/2 : RUN set -eu; false"}, said)
	assert.Equal(t, []string{"first line", "second line"}, tail)

	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, `{"stream":"line %d\n"}`, i)
	}
	tail, err = followBuild(strings.NewReader(many.String()+`{"error":"it failed"}`), say)
	var fault *BuildError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, "it failed", fault.Text)
	assert.Len(t, tail, buildTail)
	assert.Equal(t, "line 99", tail[buildTail-1])

	_, err = followBuild(strings.NewReader(`{"stream":"cut`), say)
	assert.ErrorContains(t, err, "read the progress of the build")
}

// A build that an engine refuses in the middle is told with its last lines, and
// the images' labels with what to do about them.
func TestBuildAndListByTheEngine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "engine.sock")
	answers := map[string]string{
		"/build": buildLog + `{"error":"The command returned a non-zero code: 1"}`,
		"/images/json": `[{"RepoTags":["mcp-agents/codex:9","<none>:<none>"],"Size":5,"Created":7,
			"Labels":{"mcp-agents.protocol":"9","mcp-agents.cli":"codex","mcp-agents.cli.version":"1.2.3"}}]`,
	}
	built := make(chan string, 1)
	serveAt(t, path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		for suffix, answer := range answers {
			if strings.HasSuffix(r.URL.Path, suffix) {
				if suffix == "/build" {
					body, _ := io.ReadAll(r.Body)
					built <- r.URL.Query().Get("t") + " " + r.URL.Query().Get("buildargs") + " " + string(body)
				}
				_, _ = io.WriteString(w, answer)
			}
		}
	}))
	rt, err := New("unix://" + path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	err = rt.BuildImage(t.Context(), Build{Tag: "a/b:1", Context: strings.NewReader("context"), Args: map[string]string{"BASE": "x"}}, func(string) {})
	require.EqualError(t, err, "build image a/b:1: The command returned a non-zero code: 1; its last lines:\n  first line\n  second line")
	assert.Equal(t, `a/b:1 {"BASE":"x"} context`, <-built)

	held, err := rt.Images(t.Context())
	require.NoError(t, err)
	require.Len(t, held, 1)
	assert.Equal(t, "1.2.3", held[0].Version)
	assert.EqualError(t, held[0].Problem, "image mcp-agents/codex:9 speaks sandbox protocol 9 and this front end only 1: "+
		"use the mcp-agents that the image was made for, or rebuild the image with `mcp-agents images build codex`")
}

func TestProtocolProblem(t *testing.T) {
	assert.NoError(t, protocolProblem("x", "1"))
	for protocol, want := range map[string]string{
		"":     "image x holds no sandbox-init (no label mcp-agents.protocol): build one with `mcp-agents images build`",
		"0":    "image x speaks sandbox protocol 0 and this front end 1: rebuild it with `mcp-agents images build`",
		"junk": "image x speaks sandbox protocol junk and this front end 1: rebuild it with `mcp-agents images build`",
	} {
		assert.EqualError(t, protocolProblem("x", protocol), want)
	}
}
