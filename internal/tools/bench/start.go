package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}
`

// startContainer: from the start of the program to the tool list, through front
// end and container, beside `docker run -i` of the same image and command.
func (b *bench) startContainer(ctx context.Context) error {
	home, err := b.codexHome()
	if err != nil {
		return err
	}
	ours, bare, err := alternate(11,
		func() (time.Duration, error) { return b.toolList(ctx, b.frontEnd("docker", b.image)) },
		func() (time.Duration, error) {
			return b.toolList(ctx, exec.Command("docker", "run", "-i", "--rm", "--network", "none", "--user", "1000:1000",
				"-v", home+":/codex-home", "-e", "CODEX_HOME=/codex-home", "--entrypoint", "codex", b.image, "mcp-server"))
		})
	if err != nil {
		return err
	}
	b.ratio("start to tools/list, real Codex in a container", ours, bare, "1.10")
	return nil
}

// startLocal: the same on the local runtime beside the bare command. The fake
// Codex starts in no time, so that what we add is what is seen.
func (b *bench) startLocal(ctx context.Context) error {
	ours, bare, err := alternate(21,
		func() (time.Duration, error) { return b.toolList(ctx, b.frontEnd("local", "")) },
		func() (time.Duration, error) { return b.toolList(ctx, exec.Command(b.fake, "mcp-server")) })
	if err != nil {
		return err
	}
	b.row("start to tools/list, fake Codex, local runtime", short(ours), short(bare), "+"+short(ours-bare), "+15 ms")
	return nil
}

// frontEnd is the command line of a front end for the runtime.
func (b *bench) frontEnd(runtime, image string) *exec.Cmd {
	args := []string{"--provider", "codex", "--runtime", runtime, "--workspace", b.workspace, "--network", "none",
		"--model_base_url", "http://127.0.0.1:1/v1", "--log_level", "error"}
	if image != "" {
		args = append(args, "--image", image)
	}
	cmd := exec.Command(b.agents, args...)
	cmd.Dir = b.workspace
	cmd.Env = append(os.Environ(), "CODEX_HOME="+b.login, "PATH="+filepath.Dir(b.fake)+":"+os.Getenv("PATH"))
	return cmd
}

// codexHome is a home for the bare Codex, as ours is.
func (b *bench) codexHome() (string, error) {
	dir := filepath.Join(b.dir, "codex-home")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	config := "model = \"gpt-5.6-sol\"\nopenai_base_url = \"http://127.0.0.1:1/v1\"\ncheck_for_update_on_startup = false\n" +
		"[features]\napps = false\nhooks = false\nplugins = false\n[analytics]\nenabled = false\n"
	err := errors.Join(os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o644),
		os.WriteFile(filepath.Join(dir, "auth.json"), []byte(`{"OPENAI_API_KEY":"made-up"}`), 0o644))
	if os.Getuid() == 0 {
		err = errors.Join(err, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Chown(p, 1000, 1000))
		}))
	}
	return dir, err
}

// toolList starts a server and returns the time to its tool list.
func (b *bench) toolList(ctx context.Context, cmd *exec.Cmd) (time.Duration, error) {
	begin := time.Now()
	s, err := startServer(cmd)
	if err != nil {
		return 0, err
	}
	if _, err := io.WriteString(s.in, handshake); err != nil {
		return 0, errors.Join(err, s.close())
	}
	err = s.until(ctx, []byte(`"id":2`))
	took := time.Since(begin)
	return took, errors.Join(err, s.close())
}

// server is a running MCP server.
type server struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer

	asked int // calls of ask
}

// open starts a server and does the handshake.
func open(ctx context.Context, cmd *exec.Cmd) (*server, error) {
	s, err := startServer(cmd)
	if err != nil {
		return nil, err
	}
	if _, err = io.WriteString(s.in, handshake); err == nil {
		err = s.until(ctx, []byte(`"id":2`))
	}
	if err != nil {
		return nil, errors.Join(err, s.kill())
	}
	return s, nil
}

func startServer(cmd *exec.Cmd) (*server, error) {
	s := &server{cmd: cmd}
	cmd.Stderr = &s.err
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	return s, cmd.Start()
}

// until reads lines until one holds the text.
func (s *server) until(ctx context.Context, text []byte) error {
	_, err := s.lineWith(ctx, text)
	return err
}

// lineWith reads lines until one holds the text, and returns that.
func (s *server) lineWith(ctx context.Context, text []byte) ([]byte, error) {
	for ctx.Err() == nil {
		line, err := s.out.ReadBytes('\n')
		if bytes.Contains(line, text) {
			return line, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, s.err.String())
		}
	}
	return nil, ctx.Err()
}

// kill ends a server whose calls have not ended.
func (s *server) kill() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	return s.close()
}

func (s *server) close() error {
	_ = s.in.Close()
	_, _ = io.Copy(io.Discard, s.out)
	_ = s.cmd.Wait()
	return nil
}
