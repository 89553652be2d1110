package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/go-units"
)

// pullReport is how often the progress of a pull is logged.
const pullReport = 5 * time.Second

// fromRegistry reports whether an image's name begins with a registry's host,
// by the rule of image references: it holds a dot or a port, or is localhost.
// Our own images have no host, and no registry has them.
func fromRegistry(ref string) bool {
	host, _, ok := strings.Cut(ref, "/")
	return ok && (strings.ContainsAny(host, ".:") || host == "localhost")
}

// pulls are the pulls under way, one for each image: calls that want the same
// image wait for the same pull, and a call that gives up does not end it.
type pulls struct {
	ctx    context.Context
	cancel context.CancelFunc
	owned  sync.WaitGroup

	mu      sync.Mutex
	running map[string]*pull
}

type pull struct {
	done chan struct{}
	err  error // once done

	report func(string)

	mu    sync.Mutex
	state string
}

func newPulls() *pulls {
	p := &pulls{running: map[string]*pull{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// close ends the pulls and waits for them.
func (p *pulls) close() {
	p.cancel()
	p.owned.Wait()
}

// get has the engine pull an image. When the context ends first, the pull goes
// on and the error says how far it is.
func (p *pulls) get(ctx context.Context, e *engine, ref string) error {
	p.mu.Lock()
	one := p.running[ref]
	if one == nil {
		one = &pull{done: make(chan struct{}), state: "starting", report: func(s string) { slog.Info(s) }}
		p.running[ref] = one
		p.owned.Go(func() {
			one.err = one.run(p.ctx, e, ref)
			p.mu.Lock()
			delete(p.running, ref)
			p.mu.Unlock()
			close(one.done)
		})
	}
	p.mu.Unlock()
	select {
	case <-one.done:
		if one.err != nil {
			return &ImageError{Ref: ref, Text: fmt.Sprintf("is missing and could not be pulled (%v): pull it with `docker pull %s`, or name another with --image", one.err, ref)}
		}
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return &ImageError{Ref: ref, Text: "is being pulled (" + one.progress() + "): call again in a while"}
		}
		return fmt.Errorf("wait for the pull of %s: %w", ref, context.Cause(ctx))
	}
}

func (p *pull) progress() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// run pulls and logs the progress. Only the context bounds it: an image may be
// large and the line slow.
func (p *pull) run(ctx context.Context, e *engine, ref string) error {
	p.report("pulling image " + ref)
	answer, err := e.ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return e.failure(err)
	}
	defer answer.Close()
	layers := map[string][2]int64{}
	reported := time.Now()
	for decoder := json.NewDecoder(answer); ; {
		var m struct {
			ID       string `json:"id"`
			Status   string `json:"status"`
			Error    string `json:"error"`
			Progress struct {
				Current int64 `json:"current"`
				Total   int64 `json:"total"`
			} `json:"progressDetail"`
		}
		err := decoder.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			p.report("pulled image " + ref)
			return nil
		case err != nil:
			return fmt.Errorf("read the progress: %w", err)
		case m.Error != "":
			return errors.New(m.Error)
		}
		if m.Status == "Downloading" {
			layers[m.ID] = [2]int64{m.Progress.Current, m.Progress.Total}
			p.say(layers)
		}
		if time.Since(reported) >= pullReport {
			reported = time.Now()
			p.report("pulling image " + ref + ": " + p.progress())
		}
	}
}

func (p *pull) say(layers map[string][2]int64) {
	var current, total int64
	for _, l := range layers {
		current, total = current+l[0], total+l[1]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = fmt.Sprintf("%s of %s", units.HumanSize(float64(current)), units.HumanSize(float64(total)))
}
