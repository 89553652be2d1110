package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"mcpagents/internal/provider/browser/lease"
)

// Acquire starts a keeper by its command line, waits until it holds a browser,
// and writes the ready record to out. It returns acquire's exit status and, where
// that is not 0, why. A browser that the session holds already is given back
// first: whoever asks again has lost it.
func Acquire(ctx context.Context, keep []string, req lease.Request, out io.Writer) (int, error) {
	if err := Release(ctx, req.Session, ""); err != nil {
		return StatusFailed, fmt.Errorf("release the session's earlier browser: %w", err)
	}
	cmd := exec.Command(keep[0], keep[1:]...)
	detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return StatusFailed, fmt.Errorf("make a pipe to the keeper: %w", err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return StatusFailed, fmt.Errorf("make a pipe from the keeper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return StatusFailed, fmt.Errorf("start the keeper: %w", err)
	}
	// The end of its input tells a keeper whose lease was not handed over to end.
	defer in.Close()
	defer context.AfterFunc(ctx, func() { _ = in.Close() })()
	line, err := bufio.NewReader(io.LimitReader(said, maxMessage)).ReadBytes('\n')
	var h handover
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		_ = in.Close()
		waitErr := cmd.Wait()
		return StatusFailed, fmt.Errorf("the keeper ended at its start (%w)", errors.Join(context.Cause(ctx), waitErr, err))
	}
	if h.Status != StatusOK {
		_ = in.Close()
		_ = cmd.Wait()
		return h.Status, errors.New(h.Error)
	}
	_, err = fmt.Fprintf(out, "record_version=1\nstate=ready\ngeneration=%s\nlocal_cdp_port=%d\nbrowser_url=%s\n", h.Generation, req.LocalPort, h.BrowserURL)
	if err != nil {
		return StatusFailed, fmt.Errorf("write the record: %w", err)
	}
	if _, err := io.WriteString(in, accepted+"\n"); err != nil {
		return StatusFailed, fmt.Errorf("hand the lease over: %w", err)
	}
	return StatusOK, cmd.Process.Release()
}
