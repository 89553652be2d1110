package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChecklistIsComplete(t *testing.T) {
	items, err := parse(checklist)
	require.NoError(t, err)
	assert.Len(t, items, 280)
	for _, i := range items {
		assert.NotEmpty(t, i.text, i.number)
	}
	for _, bad := range []string{"## a: here\n2 x", "## a: here\n1 x\n1 y", "## a: soon\n1 x", "## a: here, somewhere\n1 x", "## a: here\n1", "## a: here\nx y", "## a: here\n1-x y"} {
		_, err := parse(bad)
		assert.Error(t, err, bad)
	}
}

func TestNumbersOfNames(t *testing.T) {
	for name, want := range map[string][]int{
		"TestX": nil, "TestX/149_150_death": {149, 150}, "TestX/149": {149}, "TestX/1.7_TERM": nil, "TestX/B39_hangs": nil,
		"TestX/118_codex/120_closed": {118, 120}, "TestX/from_codex_143": nil, "TestX/91": {91}, "TestX/11MiB": nil,
	} {
		assert.Equal(t, want, numbers(name), name)
	}
}

func TestReport(t *testing.T) {
	items, err := parse("## a: here\n1 one\n2 two\n3 three -- needs a moon\n4 four\n## b: later\n5 five\n")
	require.NoError(t, err)
	stream := `{"Action":"pass","Package":"p","Test":"T/1_x"}
{"Action":"output","Package":"p","Test":"T/4_x","Output":"why\n"}
{"Action":"fail","Package":"p","Test":"T/4_x"}
{"Action":"pass","Package":"p","Test":"T/4_y"}
{"Action":"skip","Package":"p","Test":"T/2_x"}
not json
`
	var log, out strings.Builder
	o, err := read(strings.NewReader(stream), &log)
	require.NoError(t, err)
	assert.Equal(t, "why\nnot json\n", log.String())
	assert.False(t, report(&out, items, o))
	assert.Equal(t, "contract: 2 two: not covered: NO TEST\ncontract: 3 three: not covered: needs a moon\n"+
		"contract: 4 four: not covered: a test of it failed\ncontract: 1/4\n", out.String())

	out.Reset()
	fine := outcome{passed: map[int]bool{1: true, 2: true, 4: true}}
	assert.True(t, report(&out, items, fine), "a reason is enough")
	assert.Equal(t, "contract: 3 three: not covered: needs a moon\ncontract: 3/4\n", out.String())
}

func TestReportOfRuntimes(t *testing.T) {
	items, err := parse("## a: here\n1 one\n## b: here, on both runtimes\n2 two\n3 three\n4 four\n")
	require.NoError(t, err)
	pass := `{"Action":"pass","Package":"p","Test":"T/1_x"}
{"Action":"pass","Package":"p","Test":"T/local/all/2_3_4_x"}
{"Action":"output","Package":"p","Test":"T/local/all/4_an_hour","Output":"=== RUN\n"}
{"Action":"output","Package":"p","Test":"T/local/all/4_an_hour","Output":"    x_test.go:7: in memory only: an hour\n"}
{"Action":"skip","Package":"p","Test":"T/local/all/4_an_hour"}
`
	tests := []struct {
		name, more, want string
		ok               bool
	}{
		{"all", `{"Action":"pass","Package":"p","Test":"T/docker/all/2_3_4_x"}`,
			"contract: not in a sandbox (local): \"4 an hour\": in memory only: an hour\ncontract: on both runtimes: 3 of 3\ncontract: 4/4\n", true},
		{"one is missing", `{"Action":"pass","Package":"p","Test":"T/docker/all/2_4_x"}`,
			"contract: 3 three: NOT IN A SANDBOX (docker)\ncontract: not in a sandbox (local): \"4 an hour\": in memory only: an hour\n" +
				"contract: on both runtimes: 2 of 3\ncontract: 4/4\n", false},
		{"no engine", `{"Action":"output","Package":"p","Test":"T/docker","Output":"    y_test.go:9: no engine: see there\n"}
{"Action":"skip","Package":"p","Test":"T/docker"}`,
			"contract: nothing was run on docker: no engine: see there\ncontract: not in a sandbox (local): \"4 an hour\": in memory only: an hour\n" +
				"contract: on both runtimes: 0 of 3\ncontract: 4/4\n", true},
		{"a skipped test where others passed", `{"Action":"pass","Package":"p","Test":"T/docker/all/2_4_x"}
{"Action":"output","Package":"p","Test":"U/docker","Output":"    y_test.go:9: not today: a whim\n"}
{"Action":"skip","Package":"p","Test":"U/docker"}`,
			"contract: skipped on docker, where others ran: \"U/docker\": not today: a whim\ncontract: 3 three: NOT IN A SANDBOX (docker)\n" +
				"contract: not in a sandbox (local): \"4 an hour\": in memory only: an hour\ncontract: on both runtimes: 2 of 3\ncontract: 4/4\n", false},
		{"a skipped test, and others that name no item", `{"Action":"skip","Package":"p","Test":"U/docker"}
{"Action":"pass","Package":"p","Test":"V/docker"}`,
			"contract: skipped on docker, where others ran: \"U/docker\": no reason\ncontract: 2 two: NOT IN A SANDBOX (docker)\n" +
				"contract: 3 three: NOT IN A SANDBOX (docker)\ncontract: 4 four: NOT IN A SANDBOX (docker)\n" +
				"contract: not in a sandbox (local): \"4 an hour\": in memory only: an hour\ncontract: on both runtimes: 0 of 3\ncontract: 4/4\n", false},
		{"a skipped test where others failed", `{"Action":"skip","Package":"p","Test":"U/docker"}
{"Action":"fail","Package":"p","Test":"T/docker/all/x"}`,
			"contract: skipped on docker, where others ran: \"U/docker\": no reason\ncontract: 2 two: NOT IN A SANDBOX (docker)\n" +
				"contract: 3 three: NOT IN A SANDBOX (docker)\ncontract: 4 four: NOT IN A SANDBOX (docker)\n" +
				"contract: not in a sandbox (local): \"4 an hour\": in memory only: an hour\ncontract: on both runtimes: 0 of 3\ncontract: 4/4\n", false},
		{"played again", `{"Action":"output","Package":"p","Test":"T/docker/all/2_3_4_x","Output":"    play.go:9: played again: ticks were 90ms late: too late\n"}
{"Action":"output","Package":"p","Test":"T/docker/all/2_3_4_x","Output":"    play.go:9: played again: ticks were 40ms late: again\n"}
{"Action":"pass","Package":"p","Test":"T/docker/all/2_3_4_x"}`,
			"contract: played again (docker): \"2 3 4 x\": ticks were 90ms late: too late\ncontract: played again (docker): \"2 3 4 x\": ticks were 40ms late: again\n" +
				"contract: not in a sandbox (local): \"4 an hour\": in memory only: an hour\n" +
				"contract: played again because the machine was busy: 2 times\ncontract: on both runtimes: 3 of 3\ncontract: 4/4\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log, out strings.Builder
			o, err := read(strings.NewReader(pass+tt.more), &log)
			require.NoError(t, err)
			assert.Equal(t, tt.ok, report(&out, items, o))
			assert.Equal(t, tt.want, out.String())
		})
	}
}
