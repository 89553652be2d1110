package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/config"
)

// Every flag of the server is one of call, in each spelling, and reaches the
// server as it was given.
func TestCallPassesEveryServerFlag(t *testing.T) {
	for _, f := range config.Flags() {
		if f.Name == "help" || f.Name == "version" {
			continue
		}
		for _, name := range []string{f.Name, strings.ReplaceAll(f.Name, "_", "-"), strings.ReplaceAll(f.Name, "-", "_")} {
			var server []string
			cmd := callCommand(new(int))
			flags := cmd.Flags()
			args, want := []string{"--" + name + "=v w"}, "--"+f.Name+"=v w"
			if f.Value == "" {
				args, want = []string{"--" + name}, "--"+f.Name
			}
			require.NoError(t, flags.Parse(append(args, "--arg-json=x=1", "tool")))
			assert.Equal(t, []string{"tool"}, flags.Args())
			flags.Visit(func(flag *pflag.Flag) {
				if p, ok := flag.Value.(*passed); ok {
					server = *p.to
				}
			})
			assert.Equal(t, []string{want}, server, name)
		}
	}
}

// The pipelines of docs/examples call what there is.
func TestExamplePipelines(t *testing.T) {
	calls := regexp.MustCompile(`(?m)^.*\bmcp-agents (call (?:.*\\\n)*.*(?:\n +codex .*)?)$`)
	for _, name := range []string{"github-actions.yml", "gitlab-ci.yml"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", name))
		require.NoError(t, err)
		found := calls.FindAllStringSubmatch(string(b), -1)
		require.Len(t, found, 1, name)
		line, _, _ := strings.Cut(strings.ReplaceAll(found[0][1], "\\\n", " "), " > ")
		argv, err := config.ParseCommand(line)
		require.NoError(t, err)
		cmd := callCommand(new(int))
		require.NoError(t, cmd.ParseFlags(argv[1:]), "%s: %q", name, argv)
		assert.Equal(t, []string{"codex"}, cmd.Flags().Args(), name)
		var server []string
		cmd.Flags().Visit(func(flag *pflag.Flag) {
			if p, ok := flag.Value.(*passed); ok {
				server = *p.to
			}
		})
		_, err = config.Parse(server, func(string) (string, bool) { return "", false })
		require.NoError(t, err, "%s: %q", name, server)
		given, err := cmd.Flags().GetStringArray("arg")
		require.NoError(t, err)
		assert.Len(t, given, 3, "%s: prompt, cwd and sandbox", name)
	}
}
