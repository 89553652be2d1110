// Package images holds what the images of sandboxes are built from: their
// Dockerfiles and, in a program that the Makefile built, sandbox-init for both
// of an engine's architectures. With them the program alone, without a clone,
// can build its images.
//
// The inits are compiled before the program and are no part of the sources, so
// they are embedded under the build tag embedinit only: a plain `go build` of a
// fresh clone works and lacks them.
package images

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed codex/Dockerfile claude/Dockerfile agy/Dockerfile chrome-devtools/Dockerfile chromium/Dockerfile
var dockerfiles embed.FS

// dirs are the directories of the images by their names, which are those of
// the providers; the provider browser has two.
var dirs = map[string]string{"codex": "codex", "claude": "claude", "gemini": "agy", "chrome-devtools": "chrome-devtools", "chromium": "chromium"}

// ErrNoInit says that this program was built without the inits.
var ErrNoInit = errors.New("this program was built without sandbox-init: use a released one, or one that `make build` made")

// Dockerfile is that of an image: codex, claude, gemini, chrome-devtools or
// chromium.
func Dockerfile(name string) ([]byte, error) {
	dir, ok := dirs[name]
	if !ok {
		return nil, fmt.Errorf("no image is called %q: use codex, claude, gemini, chrome-devtools or chromium", name)
	}
	return dockerfiles.ReadFile(dir + "/Dockerfile")
}

// InitName is where a Dockerfile expects sandbox-init in its context.
func InitName(arch string) string { return "bin/sandbox-init-linux-" + arch }

// Init is the program sandbox-init for Linux on amd64 or arm64.
func Init(arch string) ([]byte, error) {
	b, err := inits.ReadFile("init/sandbox-init-linux-" + arch)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	var have []string
	entries, _ := fs.ReadDir(inits, "init")
	for _, e := range entries {
		have = append(have, strings.TrimPrefix(e.Name(), "sandbox-init-linux-"))
	}
	if len(have) == 0 {
		return nil, ErrNoInit
	}
	return nil, fmt.Errorf("the engine runs on %s, and this program can build images for %s", arch, strings.Join(have, " and "))
}
