package frontend

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// Programs builds packages into a new directory that every user can read, each
// under its path there, such as "fake/codex": "mcpagents/internal/testkit/fakecodex".
// They are static, so that they run in any image. Remove removes the directory.
func Programs(prefix string, packages map[string]string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", prefix); err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if err = os.Chmod(dir, 0o755); err == nil {
		for path, name := range packages {
			if err = build(filepath.Join(dir, path), name); err != nil {
				break
			}
		}
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}

func build(path, name string) error {
	cmd := exec.Command("go", "build", "-o", path, name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// Buffer is what a program writes while a test reads it.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
