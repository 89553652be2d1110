package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBuiltinScenarios(t *testing.T) {
	all, err := Scenarios()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, sc := range all {
		assert.NotEmpty(t, sc.Name)
		assert.NotEmpty(t, sc.Description, sc.Name)
		for _, step := range sc.Steps {
			seen[step.kind()] = true
		}
	}
	for _, kind := range []string{"answer", "exec", "apply_patch", "stall", "slow", "status", "cut", "megabyte"} {
		assert.True(t, seen[kind], "no built-in scenario shows %s", kind)
	}
}

func TestLoadScenario(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"description":"d","steps":[{"answer":"hi"}]}`), 0o600))

	sc, err := LoadScenario(file)
	require.NoError(t, err)
	assert.Equal(t, &Scenario{Name: "mine", Description: "d", Steps: []Step{{Answer: text("hi")}}}, sc)

	sc, err = LoadScenario("hello")
	require.NoError(t, err)
	assert.Equal(t, "hello", sc.Name)

	_, err = LoadScenario("helo")
	require.ErrorContains(t, err, `no scenario is named "helo"; known: bad-request, cut, default`)
	_, err = LoadScenario("absent.json")
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(file, []byte(`{"steps":[{"cut":{}},{"cut":{}}]}`), 0o600))
	_, err = LoadScenario(file)
	require.ErrorContains(t, err, "mine.json: steps[1] can never run")
}

func TestParseScenarioErrors(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"not json":            {`{`, "scenario is not valid"},
		"unknown member":      {`{"steps":[{"exec":{"cmd":"ls","lon":true}}]}`, `unknown field "lon"`},
		"two objects":         {`{"steps":[]}{}`, "data follows"},
		"name is not set":     {`{"Name":"x"}`, `unknown field "Name"`},
		"empty step":          {`{"steps":[{}]}`, "steps[0]: a step has exactly one of"},
		"null step":           {`{"steps":[{"exec":null}]}`, "steps[0]: a step has exactly one of"},
		"two kinds":           {`{"steps":[{"answer":"a","cut":{}}]}`, "steps[0]: a step has exactly one of"},
		"empty command":       {`{"steps":[{"exec":{"cmd":" "}}]}`, "exec: cmd"},
		"NUL in a command":    {`{"steps":[{"exec":{"cmd":"a\u0000"}}]}`, "exec: cmd"},
		"empty patch":         {`{"steps":[{"apply_patch":""}]}`, "the patch is empty"},
		"long stall":          {`{"steps":[{"stall":{"seconds":86401}}]}`, "stall: seconds is 86401"},
		"no deltas":           {`{"steps":[{"slow":{"interval_ms":1}}]}`, "slow: deltas is 0"},
		"slow interval":       {`{"steps":[{"slow":{"deltas":1,"interval_ms":60001}}]}`, "slow: interval_ms is 60001"},
		"status of success":   {`{"steps":[{"status":{"code":200}}]}`, "status: code is 200"},
		"no bytes":            {`{"steps":[{"megabyte":{}}]}`, "megabyte: bytes is 0"},
		"stray commentary":    {`{"steps":[{"commentary":"a","answer":"b"}]}`, "commentary goes before a tool call"},
		"step after the end":  {`{"steps":[{"exec":{"cmd":"a"}},{"answer":"b"},{"exec":{"cmd":"c"}}]}`, "steps[2] can never run: steps[1] (answer) ends the turn"},
		"final after the end": {`{"steps":[{"stall":{}}],"final":"x"}`, "final can never be sent: steps[0] (stall)"},
		"too many steps":      {`{"steps":[` + strings.Repeat(`{"exec":{"cmd":"a"}},`, 1000) + `{"cut":{}}]}`, "has 1001 steps"},
		"too long":            {strings.Repeat(" ", maxScenarioBytes+1), "at most 4194304"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseScenario([]byte(tt.file))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func FuzzScenario(f *testing.F) {
	for _, name := range scenarioNames() {
		data, err := scenarioFiles.ReadFile("scenarios/" + name + ".json")
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"steps":[{"status":{"code":429,"body":{"a":[1]}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sc, err := ParseScenario(data)
		if err != nil {
			require.Nil(t, sc)
			return
		}
		// What is accepted survives being written and read again.
		encoded, err := json.Marshal(sc)
		require.NoError(t, err)
		again, err := ParseScenario(encoded)
		require.NoError(t, err, "%s", encoded)
		require.Equal(t, len(sc.Steps), len(again.Steps))
		for i := range sc.Steps {
			require.Equal(t, sc.Steps[i].kind(), again.Steps[i].kind())
		}
	})
}

func TestMegabyteTextHasItsSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Megabyte{Bytes: rapid.IntRange(1, 5000).Draw(t, "bytes"), Multibyte: rapid.Bool().Draw(t, "multibyte")}
		got := m.Text()
		assert.Len(t, got, m.Bytes)
		assert.True(t, utf8.ValidString(got))
		if m.Bytes > 100 {
			assert.True(t, strings.HasPrefix(got, "00000000 "))
			assert.Equal(t, m.Multibyte, utf8.RuneCountInString(got) < len(got))
		}
	})
}
