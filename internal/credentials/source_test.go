package credentials

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDirectory(t *testing.T) {
	tests := map[string]struct {
		dir  string
		env  []string
		want string
	}{
		"the operator's choice wins": {"/chosen", []string{"CODEX_HOME", "/variable", "HOME", "/home/u"}, "/chosen"},
		"variable":                   {"", []string{"CODEX_HOME", "/variable", "HOME", "/home/u"}, "/variable"},
		"empty variable is none":     {"", []string{"CODEX_HOME", "", "HOME", "/home/u"}, filepath.Join("/home/u", ".codex")},
		"home":                       {"", []string{"HOME", "/home/u"}, filepath.Join("/home/u", ".codex")},
		"neither":                    {"", nil, filepath.Join(os.TempDir(), ".codex")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			src := Codex(tt.dir)
			src.Getenv = variables(tt.env...)
			assert.Equal(t, tt.want, src.Directory())
		})
	}
}

func TestDirectoryReadsTheProcessEnvironment(t *testing.T) {
	t.Setenv("CODEX_HOME", "/from/the/process")
	assert.Equal(t, "/from/the/process", Codex("").Directory())
}
