// Command fakessh is an ssh for tests: the other machine is this one. It knows
// what the lease helper in docs/examples uses: a master connection that runs a
// command, and "-O forward -L" over it. A remote forward is only noted, since
// both its ends would be the same port.
//
// Under the name chromium-headless-shell it is a browser that answers
// /json/version. FAKE_SSH_LOG is a file for its command lines, FAKE_SSH=refuse
// makes it fail as an ssh that reaches nobody.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if filepath.Base(os.Args[0]) == "chromium-headless-shell" {
		browse()
		return
	}
	note(strings.Join(os.Args[1:], " "))
	c, err := parse(os.Args[1:])
	if err == nil && c.forward {
		err = c.ask()
	} else if err == nil && os.Getenv("FAKE_SSH") == "refuse" {
		err = errors.New("ssh: connect to host box port 22: Connection refused")
	} else if err == nil {
		os.Exit(c.master())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(255)
	}
}

func note(line string) {
	if f, err := os.OpenFile(os.Getenv("FAKE_SSH_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		fmt.Fprintln(f, strings.SplitN(line, "\n", 2)[0])
		_ = f.Close()
	}
}

// connection is what a command line asks for.
type connection struct {
	socket, local, box, command string
	forward                     bool
}

func parse(args []string) (connection, error) {
	var c connection
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag := args[0]
		args = args[1:]
		if flag == "-T" || flag == "-M" {
			continue
		}
		if len(args) == 0 {
			return c, errors.New("fakessh: a flag lacks its value")
		}
		switch flag {
		case "-S":
			c.socket = args[0]
		case "-O":
			c.forward = args[0] == "forward"
		case "-L":
			c.local = args[0]
		case "-o", "-R":
		default:
			return c, fmt.Errorf("fakessh: unknown flag %s", flag)
		}
		args = args[1:]
	}
	if len(args) == 0 || c.socket == "" {
		return c, errors.New("fakessh: no host or no socket")
	}
	c.box, c.command = args[0], strings.Join(args[1:], " ")
	return c, nil
}

// ask tells the master to forward a port.
func (c connection) ask() error {
	conn, err := net.Dial("unix", c.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintln(conn, c.local)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && answer != "ok\n" {
		err = errors.New(answer)
	}
	return err
}

// master runs the command. Its input ends with this process.
func (c connection) master() int {
	l, err := net.Listen("unix", c.socket)
	if err != nil {
		return 255
	}
	defer l.Close()
	go c.serve(l)
	cmd := exec.Command("sh", "-c", c.command)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 255
	}
	go func() {
		_, _ = io.Copy(in, os.Stdin)
		_ = in.Close()
	}()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

func (c connection) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		spec, _ := bufio.NewReader(conn).ReadString('\n')
		fmt.Fprintln(conn, outcome(forward(strings.TrimSpace(spec))))
		_ = conn.Close()
	}
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// forward carries connections to 127.0.0.1:A over to 127.0.0.1:B.
func forward(spec string) error {
	parts := strings.Split(spec, ":")
	if len(parts) != 4 {
		return fmt.Errorf("fakessh: odd forward %q", spec)
	}
	l, err := net.Listen("tcp4", net.JoinHostPort(parts[0], parts[1]))
	if err != nil {
		return err
	}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp4", net.JoinHostPort(parts[2], parts[3]))
			if err != nil {
				_ = from.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	return nil
}

func browse() {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "noise\nDevTools listening on ws://%s/devtools/browser/id-%d\n", l.Addr(), os.Getpid())
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"webSocketDebuggerUrl":"ws://%s/devtools/browser/id-%d"}`, l.Addr(), os.Getpid())
	}))
}
