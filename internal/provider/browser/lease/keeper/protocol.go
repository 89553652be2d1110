package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Exit statuses of the helper protocol.
const (
	StatusOK        = 0
	StatusFailed    = 1
	StatusNone      = 69 // no browser, or no such lease
	StatusUnknown   = 70 // it could not be found out
	StatusPortTaken = 75
)

const (
	// askTimeout bounds a question to a keeper, and endTimeout the end of one.
	askTimeout = 5 * time.Second
	endTimeout = 30 * time.Second
	// maxMessage bounds a message between keeper and command, in bytes.
	maxMessage = 64 << 10
)

// question is what a command asks a keeper.
type question struct {
	Release    bool   `json:"release"`              // or whether the lease stands
	Generation string `json:"generation,omitempty"` // empty means whatever is held
}

// reply is a keeper's answer. After a release it comes once the browser is gone.
type reply struct {
	Live bool   `json:"live"` // before a release: the lease was there
	Err  string `json:"error,omitempty"`
}

// socketPath is where the keeper of a session listens.
func socketPath(session string) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	name := "mcp-agents-lease"
	if dir == "" {
		dir, name = os.TempDir(), "mcp-agents-lease-"+strconv.Itoa(os.Getuid())
	}
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the keepers' directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the keepers' directory: %w", err)
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("the keepers' directory %s is not this user's alone: remove it, or set XDG_RUNTIME_DIR", dir)
	}
	sum := sha256.Sum256([]byte(session))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".sock"), nil
}

// errNoKeeper says that no keeper of the session runs.
var errNoKeeper = errors.New("no keeper of this session runs")

// ask puts a question to the keeper of a session.
func ask(ctx context.Context, session string, q question, limit time.Duration) (reply, error) {
	path, err := socketPath(session)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return reply{}, errNoKeeper
	}
	if err != nil {
		return reply{}, fmt.Errorf("reach the lease's keeper: %w", err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return reply{}, fmt.Errorf("ask the lease's keeper: %w", err)
	}
	var r reply
	if err := json.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&r); err != nil {
		return reply{}, fmt.Errorf("ask the lease's keeper: it gave no answer: %w", err)
	}
	return r, nil
}

// Status is the exit status of status: whether the lease of a session stands.
func Status(ctx context.Context, session, generation string) (int, error) {
	r, err := ask(ctx, session, question{Generation: generation}, askTimeout)
	switch {
	case errors.Is(err, errNoKeeper):
		return StatusNone, nil
	case err != nil:
		return StatusUnknown, err
	case r.Live:
		return StatusOK, nil
	}
	return StatusNone, nil
}

// Release gives the browser of a session back and returns when it is gone. What
// is gone already is released.
func Release(ctx context.Context, session, generation string) error {
	r, err := ask(ctx, session, question{Release: true, Generation: generation}, endTimeout)
	if errors.Is(err, errNoKeeper) {
		return nil
	}
	if err == nil && r.Err != "" {
		err = errors.New(r.Err)
	}
	return err
}
