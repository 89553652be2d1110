package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mcpagents/internal/provider/browser/lease/dockerbox"
	"mcpagents/internal/sandbox/docker"
)

// listPages is the cheapest call that needs a browser.
const listPages = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"list_pages","arguments":{}}}` + "\n"

// hasBrowser says whether the browser's images are here; what they are for is
// skipped otherwise.
func hasBrowser(ctx context.Context) bool {
	for _, image := range []string{docker.DefaultImage("chrome-devtools"), docker.DefaultImage(dockerbox.Browser)} {
		if exec.CommandContext(ctx, "docker", "image", "inspect", image).Run() != nil {
			fmt.Fprintf(os.Stderr, "skipped: image %s is not here: make images-browser\n", image)
			return false
		}
	}
	return true
}

// browserStart: from nothing to the first answer of a browser tool, beside the
// same three containers by docker run; and the first call of a client that is
// connected already, whose box waits for it.
func (b *bench) browserStart(ctx context.Context) error {
	if !hasBrowser(ctx) {
		return nil
	}
	ours, bare, err := alternate(7,
		func() (time.Duration, error) {
			begin := time.Now()
			s, err := b.browserFrontEnd(ctx)
			if err != nil {
				return 0, err
			}
			err = s.callPages(ctx, 3)
			return time.Since(begin), errors.Join(err, s.close())
		},
		func() (time.Duration, error) {
			begin := time.Now()
			s, end, err := b.bareBrowser(ctx)
			if err != nil {
				return 0, err
			}
			defer end()
			err = s.callPages(ctx, 3)
			return time.Since(begin), errors.Join(err, s.close())
		})
	if err != nil {
		return err
	}
	b.ratio("start to the first answer of a browser tool, beside docker run", ours, bare, "")
	var warm []time.Duration
	for range 7 {
		s, err := b.browserFrontEnd(ctx)
		if err != nil {
			return err
		}
		begin := time.Now()
		err = s.callPages(ctx, 3)
		warm = append(warm, time.Since(begin))
		if err = errors.Join(err, s.close()); err != nil {
			return err
		}
	}
	b.row("first browser call of a connected client, its box waiting", short(median(warm)), "", "", "")
	return nil
}

// browserCalls: a call's round trip on a leased browser, beside the same tool
// server driven without us.
func (b *bench) browserCalls(ctx context.Context) error {
	if !hasBrowser(ctx) {
		return nil
	}
	ours, err := b.browserFrontEnd(ctx)
	if err != nil {
		return err
	}
	bare, end, err := b.bareBrowser(ctx)
	if err != nil {
		return errors.Join(err, ours.close())
	}
	defer end()
	id := 2
	call := func(s *server) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			id++
			begin := time.Now()
			err := s.callPages(ctx, id)
			return time.Since(begin), err
		}
	}
	a, c, err := alternate(101, call(ours), call(bare))
	if err = errors.Join(err, ours.close(), bare.close()); err != nil {
		return err
	}
	b.row("list_pages on a leased browser, identity checked twice", short(a), short(c), "+"+short(a-c), "")
	return nil
}

// callPages calls list_pages and waits for the answer.
func (s *server) callPages(ctx context.Context, id int) error {
	if _, err := fmt.Fprintf(s.in, listPages, id); err != nil {
		return err
	}
	return s.until(ctx, fmt.Appendf(nil, `"id":%d`, id))
}

// shakeHands brings a server to its tool list.
func shakeHands(ctx context.Context, cmd *exec.Cmd) (*server, error) {
	s, err := startServer(cmd)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(s.in, handshake)
	if err == nil {
		err = s.until(ctx, []byte(`"id":2`))
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (b *bench) browserFrontEnd(ctx context.Context) (*server, error) {
	cmd := exec.Command(b.agents, "--provider", "browser", "--workspace", b.workspace, "--browser_network", "none",
		"--handshake_timeout", "60", "--log_level", "error")
	cmd.Dir = b.workspace
	return shakeHands(ctx, cmd)
}

// bareBrowser is what ours makes, by three docker runs: a container that holds
// the namespace, the browser and the tool server in it.
func (b *bench) bareBrowser(ctx context.Context) (s *server, end func(), err error) {
	profile, err := docker.Profile(dockerbox.Syscalls())
	if err != nil {
		return nil, nil, err
	}
	profileFile := filepath.Join(b.dir, "chromium.json")
	if err := os.WriteFile(profileFile, []byte(profile), 0o644); err != nil {
		return nil, nil, err
	}
	var made []string
	end = func() {
		_ = exec.Command("docker", append([]string{"rm", "-f"}, made...)...).Run()
	}
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "docker", append([]string{"run", "-d", "--rm", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
			"--user", "1000:1000", "--read-only", "--log-driver", "json-file"}, args...)...).Output()
		id := strings.TrimSpace(string(out))
		if id != "" {
			made = append(made, id)
		}
		return id, err
	}
	defer func() {
		if err != nil && len(made) > 0 {
			end()
		}
	}()
	image := docker.DefaultImage(dockerbox.Browser)
	holder, err := run("--network", "none", "--entrypoint", "sleep", image, "100000")
	if err != nil {
		return nil, nil, fmt.Errorf("hold a namespace: %w", err)
	}
	browser, err := run("--network", "container:"+holder, "--security-opt", "seccomp="+profileFile, "--tmpfs", "/tmp:rw,nosuid,nodev,size=512m,mode=1777",
		"-e", "HOME=/tmp", "--entrypoint", "/usr/lib/chromium/chromium-headless-shell", image, "--remote-debugging-port=9222",
		"--user-data-dir=/tmp/profile", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage", "about:blank")
	if err != nil {
		return nil, nil, fmt.Errorf("start a browser: %w", err)
	}
	for {
		logs, _ := exec.CommandContext(ctx, "docker", "logs", browser).CombinedOutput()
		if strings.Contains(string(logs), "DevTools listening on") {
			break
		}
		if err := pause(ctx); err != nil {
			return nil, nil, err
		}
	}
	cmd := exec.Command("docker", "run", "-i", "--rm", "--network", "container:"+holder, "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--user", "1000:1000", "--read-only", "--log-driver", "none", "--tmpfs", "/tmp:rw,nosuid,nodev,size=512m,mode=1777", "-e", "HOME=/tmp",
		"--entrypoint", "chrome-devtools-mcp", docker.DefaultImage("chrome-devtools"), "--browserUrl", "http://127.0.0.1:9222", "--no-usage-statistics")
	s, err = shakeHands(ctx, cmd)
	return s, end, err
}
