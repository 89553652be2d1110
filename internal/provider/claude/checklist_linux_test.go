package claude

import "testing"

// TestChecklist is what users of the job tools rely on, each under its number
// in the list of what `make contract` counts. 63 and 67 are rows of TestEnds.
func TestChecklist(t *testing.T) {
	for _, item := range []struct {
		name string
		test func(*testing.T)
	}{
		{"57 a whole life", testReviewLifecycle},
		{"58 a blocking call", testBlockingCall},
		{"59 invalid arguments start nothing", testJobArguments},
		{"60 cancel", testCancel},
		{"61 a timeout", testDeadline},
		{"62 one blank result", testRetryIsOneStatus},
		{"64 progress beside a status", testProgressBesideStatus},
		{"65 a client that goes away", testDisconnect},
		{"66 pages", testPaging},
		{"68 retention", testRetention},
		{"69 capacity", testCapacity},
		{"70 a full table", testRetained},
	} {
		t.Run(item.name, item.test)
	}
}
