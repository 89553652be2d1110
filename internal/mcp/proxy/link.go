package proxy

import (
	"context"
	"time"
)

// Phase says where the child stands, and so what becomes of a message for it.
type Phase uint8

const (
	Absent    Phase = iota // there is none: the handshake is answered here, a call starts one
	Launching              // it is being started; messages wait
	Opening                // it has our initialize but not answered it; messages wait
	Running                // it gets the messages
	Closing                // one is being destroyed: a call then starts the next
)

// link is what a session has of its child.
type link struct {
	Phase      Phase
	Child      *Run // in Opening and Running
	launches   int
	stopLaunch context.CancelFunc
	restarted  func(error) // waits for a restart; nil if there is none
	leaving    bool        // the child was told to end, as the client is gone
}

// launch starts a child in the background. At most one launch is under way.
func (s *Session[R]) launch() {
	ctx, stop := context.WithCancel(s.running)
	s.stopLaunch = stop
	s.Phase = Launching
	s.launches++
	s.Outside(func(context.Context) func() {
		child, err := s.policy.Launch(ctx)
		return func() { s.launchEnded(child, err) }
	})
}

// launchEnded gives a new child what waits for it. A client that has got its
// answer to initialize does not send it again, so the child gets the saved one
// under an id of ours first.
func (s *Session[R]) launchEnded(child Started, err error) {
	s.stopLaunch()
	if err != nil {
		if s.Outcome == nil {
			s.Fail(err)
		}
		return
	}
	run := Follow(child.Process, s.launches, child.ReadStderr)
	s.Child = run
	if s.Outcome != nil {
		return // the shutdown closes it
	}
	if child.Accept != nil {
		child.Accept(run)
	}
	if s.initialize == nil {
		s.opened()
		return
	}
	s.Phase = Opening
	run.Initialized = true
	run.Input.Write(s.openingLine(s.cfg.PrivateID("initialize", run.Number)))
	for _, r := range s.Waiting() {
		s.armReady(r)
	}
	if limit := s.cfg.OpeningTimeout; limit > 0 {
		s.Clock.After(limit, func() {
			if s.Child == run && s.Phase == Opening {
				s.Fail(&LateError{limit})
			}
		})
	}
}

// opened completes the start of a child.
func (s *Session[R]) opened() {
	s.Phase = Running
	if s.initialize != nil && s.listed != nil {
		s.Child.Input.Write(listLine(s.cfg.PrivateID("tools-list", s.Child.Number)))
	}
	if then := s.restarted; then != nil {
		s.restarted = nil
		then(nil)
	}
	s.Pump()
}

// armReady limits how long a call waits for a child that has not answered its
// initialize. Without a call such a child may take its time.
func (s *Session[R]) armReady(r R) {
	run, limit := s.Child, s.cfg.ReadyTimeout
	if limit == 0 || run == nil || r.request().Method != "tools/call" || run.Served || !run.Initialized || run.limited {
		return
	}
	run.limited = true
	s.Clock.After(limit, func() {
		if s.Child == run && !run.Served {
			s.Fail(&LateError{limit})
		}
	})
}

// Served notes that the child has answered its initialize with the answer to r,
// or anything at all if it got none. From here its end is the session's end.
func (s *Session[R]) Served(r R) {
	s.Child.Served = s.Child.Served || r.request().Method == "initialize" || !s.Child.Initialized
}

// fromChild takes a piece of the child's stdout, or its end.
func (s *Session[R]) fromChild(p Piece, ok bool) {
	run := s.Child
	if !ok {
		run.StdoutClosed, run.MidLine = true, false
		s.outputEnded()
		return
	}
	run.MidLine = p.Begun || p.Behind || !p.Last && !p.Cut
	if !p.Begun {
		s.policy.Piece(p)
	}
}

// fromStderr takes a part of the child's stderr, or its end.
func (s *Session[R]) fromStderr(chunk []byte, ok bool) {
	if !ok {
		s.Child.StderrClosed = true
		s.outputEnded()
		return
	}
	s.policy.Stderr(chunk)
}

// Native queues a piece of the child's output for the client and reports whether
// the line can be passed on; else the rest of it is dropped.
func (s *Session[R]) Native(p Piece, framed bool) bool {
	err := s.Out.Native(p, framed)
	if err != nil {
		s.Log.Warn("dropped a line of "+s.cfg.Name, "error", err)
	}
	return err == nil
}

// Ending describes how the child ended.
func (s *Session[R]) Ending() string {
	return s.Child.End.Reason(s.cfg.Name, s.cfg.Signal(s.Child.End.Exit.Signal))
}

// childEnded takes the end of the child. Its output may still be under way.
func (s *Session[R]) childEnded(e Ending) {
	run := s.Child
	run.End = &e
	if e.Err != nil {
		s.Log.Warn(s.cfg.Name+" was lost", "error", e.Err)
	} else {
		s.Log.Info(e.status(s.cfg.Name, s.cfg.Signal(e.Exit.Signal)))
	}
	s.Clock.After(DrainTime, func() {
		if s.Child == run {
			s.runEnded()
		}
	})
	s.outputEnded()
}

// outputEnded goes on when the child and all of its output have ended.
func (s *Session[R]) outputEnded() {
	if s.Child.Over() {
		s.runEnded()
	}
}

// runEnded takes the end of a child whose output has come, or is not waited for
// any longer.
func (s *Session[R]) runEnded() {
	end := s.Child.End
	switch {
	case s.leaving:
		s.Finish(Outcome{Code: end.Code(), Reason: "client disconnected, " + s.Ending()})
	case s.Child.Served:
		s.Finish(Outcome{Code: end.Code(), Reason: s.Ending(), Emit: true})
	default:
		s.Fail(s.policy.NotServed())
	}
}

// Fail gives everything that is open an error, since no child can serve it, and
// destroys the child if there is one. The next call tries again.
func (s *Session[R]) Fail(err error) {
	s.Log.Error("failed to start " + s.cfg.Name + ": " + err.Error())
	s.Phase = Absent
	if s.Child != nil {
		s.closeChild()
	}
	clear(s.Owed) // the answers will not come
	if then := s.restarted; then != nil {
		s.restarted = nil
		then(err)
	}
	for _, p := range s.remove(func(Pending[R]) bool { return true }) {
		var none R
		if p.Request != none {
			s.keepInitialize(p.Request.request())
		}
	}
	for _, r := range s.InOrder() {
		s.policy.Failed(r, err)
	}
}

// Restart replaces the child and calls then when the new one runs or could not
// be started. The policy has settled or requeued what the old one has got.
func (s *Session[R]) Restart(then func(error)) {
	if s.Phase == Launching {
		then(ErrStarting)
		return
	}
	clear(s.Owed)
	s.restarted = then
	switch {
	case s.Child != nil:
		s.closeChild()
	case s.Phase == Absent:
		s.launch()
	}
}

// closeChild destroys the child in the background.
func (s *Session[R]) closeChild() {
	run := s.Child
	s.Child, s.Phase = nil, Closing
	s.Out.Finish()
	s.Outside(func(context.Context) func() {
		s.destroy(run)
		return s.childClosed
	})
}

// destroy destroys a child and waits for its goroutines.
func (s *Session[R]) destroy(run *Run) {
	if err := run.Close(); err != nil {
		s.Log.Error(s.cfg.Name+" was not closed cleanly", "error", err)
	}
}

// childClosed starts the next child if something waits for it.
func (s *Session[R]) childClosed() {
	s.Phase = Absent
	switch {
	case s.Outcome != nil:
	case s.restarted != nil:
		s.launch()
	default:
		s.Pump()
	}
}

// WindDown ends the session after the end of the client's messages. A child that
// serves gets the end of its input and the time of grace to end; answers that
// come meanwhile still go out. Without one the handshake is answered here: a
// client that sent its questions at once still reads the answers.
func (s *Session[R]) WindDown(grace time.Duration) {
	if s.Phase != Running {
		for _, r := range s.Take(func(r R) bool { return Handshake(r.request().Method) }) {
			s.keepInitialize(r.request())
			s.AnswerLocally(r, nil)
		}
		s.Finish(Outcome{Reason: "client disconnected"})
		return
	}
	s.leaving = true
	s.Child.Input.Close()
	s.Clock.After(grace, func() {
		s.Finish(Outcome{Reason: "client disconnected and " + s.cfg.Name + " did not end"})
	})
}
