package lease

import (
	"context"
	"errors"
	"fmt"
)

// Lessor lends browsers. The methods may be called from several goroutines, but
// at most one lease of a session is asked for or held at a time.
type Lessor interface {
	// Acquire borrows a browser and returns when it accepts connections on
	// Request.LocalPort. It may take minutes and keeps its own limit. When ctx
	// ends first, it cleans up before it returns.
	//
	// Errors are *UnavailableError, ErrPortTaken or *ProvisioningError. A Record
	// with a Generation beside an error is a lease that exists and is of no use:
	// the caller releases it.
	Acquire(ctx context.Context, req Request) (Record, error)

	// Status says whether the lease itself still stands, which is another
	// question than whether the browser answers. The error says why the state
	// is Unknown.
	Status(ctx context.Context, rec Record) (State, error)

	// Release gives the browser back and keeps its own limit. After an error
	// the caller does not try again; the lease is then the Lessor's to end.
	Release(ctx context.Context, rec Record, reason Reason) error

	// Identity is what the browser now at the record's address calls itself: the
	// id in /devtools/browser/<id>, new with each start of a browser, and
	// whatever else tells two leases apart. It is compared byte for byte. It
	// takes at most IdentityTimeout, and fails when nothing answers or the
	// answer proves nothing.
	Identity(ctx context.Context, rec Record) (string, error)
}

// Request is what a caller wants of a browser.
type Request struct {
	Session   string // a UUID, the same for the life of the front end
	LocalPort int    // from Downstream.Port: the control port where the downstream runs
	Viewport  string // WIDTHxHEIGHT, both positive
	// AppPort is a port of 127.0.0.1 on the front end's machine that pages reach
	// under the same address; 0 means none.
	AppPort int
}

// Record is a lease that was given.
type Record struct {
	Session    string
	Generation string // not empty; names this lease and no other of the session
	BrowserURL string // http://127.0.0.1:<LocalPort>, as the downstream sees it
}

// State is what a Lessor knows of a lease.
type State uint8

const (
	Unknown State = iota // it could not be found out
	Live                 // it stands
	Lost                 // it is gone for good
)

func (s State) String() string { return [...]string{"unknown", "live", "lost"}[s] }

// Reason is why a lease is given back. Its text is part of the helper protocol.
type Reason string

const (
	Idle     Reason = "idle"     // it may be asked for again: nothing was used for a while, or it proved to be another browser
	Shutdown Reason = "shutdown" // the front end ends
)

// ErrPortTaken says that Request.LocalPort was taken by another program. The
// caller may try again with another port.
var ErrPortTaken = errors.New("the local control port is taken")

// Cause is why there is no browser to lend.
type Cause uint8

const (
	NoBox     Cause = iota // no machine, engine or image for one
	DevServer              // the development server that it is to show does not answer
	MinIO                  // the object store that it needs does not answer
)

// UnavailableError says that there is no browser to lend now, found out before
// anything was made. A later try may succeed.
type UnavailableError struct {
	Cause Cause
	// Text is for the caller of a tool. Of DevServer and MinIO it is the one
	// line that says what was found, unchanged.
	Text string
	// Detail is for the log: the end of what was reported.
	Detail string
}

func (e *UnavailableError) Error() string { return e.Text }

// ProvisioningError says that getting a browser failed underway.
type ProvisioningError struct {
	Text string // for the caller of a tool: what failed and what to do next
	Err  error  // for the log; may be nil
}

func (e *ProvisioningError) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return fmt.Sprintf("%s: %v", e.Text, e.Err)
}

func (e *ProvisioningError) Unwrap() error { return e.Err }
