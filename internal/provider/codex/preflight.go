package codex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpagents/internal/sandbox"
)

// passValid is how long a remembered pass counts: the host's settings, on which
// it depends too, can change without notice.
const passValid = 24 * time.Hour

// preflight runs a command in Codex's own sandbox. When that cannot work,
// every command of a turn fails while the turn itself "completes".
func (s *Sandboxed) preflight(ctx context.Context, box *sandbox.Sandbox) error {
	if !s.Preflight || s.checked {
		return nil
	}
	mark := s.passMark(ctx)
	if st, err := os.Stat(mark); err == nil && time.Since(st.ModTime()) < passValid {
		s.checked = true
		return nil
	}
	out, err := box.Run(ctx, sandbox.Command{
		Argv: []string{"codex", "sandbox", "-c", `sandbox_mode="read-only"`, "--", "true"},
		Env:  s.environ(box), Dir: s.dir(), Lifetime: 20 * time.Second,
	})
	if err != nil {
		return &LaunchError{Text: "check Codex's own sandbox: " + err.Error() + s.deniedHint(err)}
	}
	if out.Exit.Code != 0 {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out.Stderr)), "\n")
		return &LaunchError{Text: "Codex's own sandbox cannot start inside this container (" + first + "): " +
			"the engine does not apply the seccomp profile of mcp-agents, or the host forbids user namespaces " +
			"(AppArmor: sysctl kernel.apparmor_restrict_unprivileged_userns=0; Debian: kernel.unprivileged_userns_clone=1)"}
	}
	s.checked = true
	s.remember(mark)
	return nil
}

// passMark is the file whose presence says that the preflight passed, empty
// where nothing is remembered.
func (s *Sandboxed) passMark(ctx context.Context) string {
	cache, err := os.UserCacheDir()
	if err != nil || s.PreflightKey == nil {
		return ""
	}
	key, err := s.PreflightKey(ctx)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(cache, "mcp-agents", "codex-sandbox-works-"+hex.EncodeToString(sum[:8]))
}

// remember leaves the mark. Without it the next front end only looks again.
func (s *Sandboxed) remember(mark string) {
	if mark == "" {
		return
	}
	err := os.MkdirAll(filepath.Dir(mark), 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.Create(mark); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		s.Log.Debug("the check of Codex's own sandbox is not remembered", "error", err)
	}
}
