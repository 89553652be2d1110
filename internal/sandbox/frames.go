package sandbox

import (
	"io"
	"strings"
	"time"

	"mcpagents/internal/sandbox/tunnel"
	"mcpagents/internal/sandbox/wire"
)

// rebuild is what to do about an init of another protocol.
const rebuild = "rebuild the image with `mcp-agents images build`, or use the mcp-agents that it was made for"

// read handles frames until the stream ends. It waits for nothing but the
// stream, so that no consumer can hold an exit or a pong back.
func (s *Sandbox) read() {
	defer s.workers.Done()
	for {
		f, err := s.conn.Next()
		if err == nil {
			s.heard.Store(int64(time.Since(s.started)))
			err = s.handle(f)
		}
		if err != nil {
			s.fail(&LostError{Cause: err, Tail: s.inst.Diagnostics()})
			_ = s.inst.Close()
			s.tunnel.Close() // who holds a connection learns that it has ended
			return
		}
	}
}

func (s *Sandbox) handle(f wire.Frame) error {
	if tunnel.Carries(f) {
		return s.tunnel.Handle(f)
	}
	switch f.Type {
	case wire.TypeHello:
		return s.handleHello(f)
	case wire.TypeListening:
		return s.handleListening(f)
	case wire.TypeStarted, wire.TypeData, wire.TypeCredit, wire.TypeEOF, wire.TypeExit:
		s.mu.Lock()
		proc := s.proc
		s.mu.Unlock()
		if proc == nil {
			return wire.Errorf("%s frame while no command runs", f.Type)
		}
		return proc.handle(f)
	case wire.TypeCollected:
		return s.handleCollected(f)
	case wire.TypePing:
		return s.conn.Send(wire.Frame{Type: wire.TypePong, Payload: f.Payload})
	case wire.TypePong:
		return nil
	case wire.TypeError:
		var e wire.Error
		if err := wire.Unmarshal(f, &e); err != nil {
			return err
		}
		text := cut(e.Text)
		if e.Code == "version" {
			text += ": " + rebuild
		}
		return &RemoteError{Code: cut(e.Code), Text: text}
	default:
		return wire.Errorf("%s frame is not for the front end", f.Type)
	}
}

func (s *Sandbox) handleHello(f wire.Frame) error {
	var w wire.Welcome
	if err := wire.Unmarshal(f, &w); err != nil {
		return err
	}
	if w.Version != wire.Version {
		return wire.Errorf("sandbox-init %s speaks version %d, this front end %d: %s", cut(w.Build), w.Version, wire.Version, rebuild)
	}
	if s.greeted {
		return wire.Errorf("a second hello")
	}
	s.greeted = true
	s.greeting <- w // has room for it
	return nil
}

// cut bounds a text that the sandbox wrote.
func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), wire.MaxErrorText)], "?")
}

func (s *Sandbox) handleCollected(f wire.Frame) error {
	c, err := wire.DecodeCollected(f)
	if err != nil {
		return err
	}
	if !c.Asked {
		s.changes.put(c)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ask := s.collection
	if ask == nil || ask.names[len(ask.got)] != c.Name {
		return wire.Errorf("a collected file that nobody asked for")
	}
	if ask.got = append(ask.got, c); len(ask.got) == len(ask.names) {
		s.collection = nil
		close(ask.done)
	}
	return nil
}

func (p *Process) handle(f wire.Frame) error {
	switch f.Type {
	case wire.TypeStarted:
		var st wire.Started
		if err := wire.Unmarshal(f, &st); err != nil {
			return err
		}
		return p.begun(st.PID)
	case wire.TypeExit:
		var e wire.Exit
		if err := wire.Unmarshal(f, &e); err != nil {
			return err
		}
		if (e.Reason == wire.ReasonSpawnFailed) == isClosed(p.started) {
			return wire.Errorf("an exit for %q that does not fit the start", cut(string(e.Reason)))
		}
		p.box.clearProcess() // first, so that who waited for the end can spawn the next
		p.end(e)
		return nil
	case wire.TypeCredit:
		n, err := wire.Uint32(f)
		if err != nil {
			return err
		}
		if f.Stream != wire.Stdin {
			return wire.Errorf("credit for stream %d", f.Stream)
		}
		return p.stdin.Grant(n)
	}
	box := p.stdout
	switch f.Stream {
	case wire.Stdout:
	case wire.Stderr:
		box = p.stderr
	default:
		return wire.Errorf("%s frame for stream %d", f.Type, f.Stream)
	}
	if f.Type == wire.TypeEOF {
		box.Close(io.EOF)
		return nil
	}
	return box.Put(f.Payload)
}
