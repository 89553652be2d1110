package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"mcpagents/internal/mcp/stdio"
	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/dockerbox"
)

// parentInterval is how often the keeper looks at the process it serves.
const parentInterval = time.Second

// accepted is what acquire says once it has handed the lease over.
const accepted = "accepted"

// handover is what a keeper says to the acquire that started it.
type handover struct {
	Status     int    `json:"status"` // acquire's exit status
	Error      string `json:"error,omitempty"`
	Generation string `json:"generation,omitempty"`
	BrowserURL string `json:"browser_url,omitempty"`
}

// Keep is the keeper: it gets a browser, says so on out, and holds it until it
// is released, the process parent has ended, the browser has, or in ends without
// the word that the lease was handed over. It returns when nothing is left.
func Keep(ctx context.Context, box *dockerbox.Box, req lease.Request, parent int, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := &keeper{box: box, over: make(chan struct{}, 2)}
	go k.awaitAcceptance(in, cancel)
	err := k.hold(ctx, req, parent, out)
	closing, cancelClosing := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancelClosing()
	err = errors.Join(err, box.Close(closing))
	k.finish(err)
	return err
}

// keeper is one lease that is held.
type keeper struct {
	box    *dockerbox.Box
	record lease.Record
	over   chan struct{} // it was released, or its user has ended
	served sync.WaitGroup

	mu    sync.Mutex
	asked []net.Conn // releases that wait for the end
}

// awaitAcceptance ends everything when the acquire that started us goes away
// before it has handed the lease over. It may never return, at the end of the
// process.
func (k *keeper) awaitAcceptance(in io.Reader, giveUp func()) {
	line, _ := bufio.NewReader(io.LimitReader(in, maxMessage)).ReadString('\n')
	if line != accepted+"\n" {
		giveUp()
	}
}

// hold gets the browser and holds it.
func (k *keeper) hold(ctx context.Context, req lease.Request, parent int, out io.Writer) error {
	if req.AppPort == req.LocalPort { // our own listener would pass for the application
		return say(out, handover{Status: StatusPortTaken, Error: "the control port is the application's"})
	}
	control, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(req.LocalPort)))
	if err != nil {
		return say(out, handover{Status: StatusPortTaken, Error: err.Error()})
	}
	defer control.Close()
	questions, err := listen(req.Session)
	if err != nil {
		return say(out, handover{Status: StatusFailed, Error: err.Error()})
	}
	defer k.served.Wait()
	defer questions.Close() // and with it the socket's file
	inside := req
	if inside.LocalPort, err = k.box.Port(ctx); err == nil && inside.LocalPort == req.AppPort {
		inside.LocalPort, err = k.box.Port(ctx)
	}
	if err == nil {
		k.record, err = k.box.Acquire(ctx, inside)
	}
	if err != nil {
		return say(out, failed(err))
	}
	ended := k.box.Ended(k.record)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.served.Go(func() { _ = k.box.Serve(ctx, control, k.record) })
	defer control.Close() // before served is waited for
	k.served.Go(func() { k.answer(questions) })
	if err := say(out, handover{Generation: k.record.Generation, BrowserURL: "http://127.0.0.1:" + strconv.Itoa(req.LocalPort)}); err != nil {
		return err
	}
	k.served.Go(func() {
		if (stdio.Watchdog{Interval: parentInterval, PID: parent}).Wait(ctx) {
			k.over <- struct{}{}
		}
	})
	select {
	case <-k.over:
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}

// failed is the handover of an acquire that failed.
func failed(err error) handover {
	switch {
	case errors.Is(err, lease.ErrPortTaken):
		return handover{Status: StatusPortTaken, Error: err.Error()}
	default:
		if none, ok := errors.AsType[*lease.UnavailableError](err); ok {
			return handover{Status: StatusNone, Error: none.Text}
		}
		return handover{Status: StatusFailed, Error: err.Error()}
	}
}

func say(out io.Writer, h handover) error {
	if err := json.NewEncoder(out).Encode(h); err != nil {
		return fmt.Errorf("hand the lease over: %w", err)
	}
	return nil
}

// listen makes the session's socket. One that nobody listens on is left over.
func listen(session string) (net.Listener, error) {
	path, err := socketPath(session)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of an earlier keeper: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for status and release: %w", err)
	}
	return l, nil
}

// answer answers questions until the listener is closed.
func (k *keeper) answer(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.SetReadDeadline(time.Now().Add(askTimeout))
		var q question
		if err := json.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&q); err != nil {
			_ = conn.Close()
			continue
		}
		ours := q.Generation == "" || q.Generation == k.record.Generation
		state, _ := k.box.Status(context.Background(), k.record)
		if !q.Release || !ours {
			_ = json.NewEncoder(conn).Encode(reply{Live: ours && state == lease.Live})
			_ = conn.Close()
			continue
		}
		k.mu.Lock()
		k.asked = append(k.asked, conn) // answered once nothing is left
		k.mu.Unlock()
		k.over <- struct{}{}
		return
	}
}

// finish answers the releases.
func (k *keeper) finish(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := reply{Live: true}
	if err != nil {
		r.Err = err.Error()
	}
	for _, conn := range k.asked {
		_ = conn.SetWriteDeadline(time.Now().Add(askTimeout))
		_ = json.NewEncoder(conn).Encode(r)
		_ = conn.Close()
	}
}
