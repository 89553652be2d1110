package images

import (
	"bytes"
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDockerfilesAreTheProjects(t *testing.T) {
	for name, dir := range dirs {
		want, err := os.ReadFile(dir + "/Dockerfile")
		require.NoError(t, err)
		got, err := Dockerfile(name)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), name)
	}
	_, err := Dockerfile("nope")
	assert.ErrorContains(t, err, "use codex, claude, gemini, chrome-devtools or chromium")
}

// Without the tag there are none, with it each is for its platform.
func TestInits(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		b, err := Init(arch)
		if err != nil {
			require.ErrorIs(t, err, ErrNoInit)
			continue
		}
		f, err := elf.NewFile(bytes.NewReader(b))
		require.NoError(t, err)
		assert.Equal(t, machine, f.Machine)
		_, err = Init("riscv64")
		assert.ErrorContains(t, err, "can build images for")
	}
	_, err := Init("riscv64")
	assert.Error(t, err)
}
