package acceptance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpagents/internal/testkit/images"
	"mcpagents/internal/testkit/wait"

	"github.com/stretchr/testify/require"
)

// The image alone runs a scripted call: its model cannot be a program of the
// host, since the host has none.
func TestScriptedCallInTheImage(t *testing.T) {
	image := images.FrontEnd()
	s := newSetting(t, "docker", images.Codex(t))
	scenario := filepath.Join(s.workspace, "scenario.json")
	for _, tt := range []struct {
		name, scenario, deadline string
		status                   int
		stdout                   string
	}{
		{"an answer", `{"steps": [{"exec": {"cmd": "echo made >made.txt"}}], "final": "made it"}`, "600", 0, "made it\n"},
		{"a deadline", `{"steps": [{"exec": {"cmd": "sleep 600"}}], "final": "never"}`, "8", 124, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(scenario, []byte(tt.scenario), 0o644))
			cmd := exec.Command("docker", "run", "-i", "--rm", "--network", "none", "-v", "/var/run/docker.sock:/var/run/docker.sock",
				"-v", s.workspace+":"+s.workspace, "-w", s.workspace, image, "call", "--provider", "codex", "--image", s.image,
				"--scripted", "scenario.json", "--deadline", tt.deadline, "codex", "--arg", "prompt=go", "--arg", "cwd=.",
				"--arg", "sandbox=workspace-write", "--out", "out")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Start())
			wait.Until(t, func() bool { return models(t, image) > 0 }, "the check for what is left sees the model")
			_ = cmd.Wait()
			require.Equal(t, tt.status, cmd.ProcessState.ExitCode(), stderr.String())
			require.Equal(t, tt.stdout, stdout.String())
			require.FileExists(t, filepath.Join(s.workspace, "out", "result.json"))
			wait.Until(t, func() bool { return len(sharing(t, s.workspace)) == 0 && models(t, image) == 0 })
		})
	}
	require.True(t, exists(s.workspace, "made.txt"))
}

// models counts the containers of scripted models that run in an image; other
// tests' models run in others.
func models(t *testing.T, image string) int {
	t.Helper()
	return len(strings.Fields(output(t, "docker", "ps", "-a", "-q", "--filter", "label=mcp-agents.provider=model", "--filter", "ancestor="+image)))
}
