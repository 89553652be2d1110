package acceptance

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// row is one line of the table.
type row struct {
	runtime, name string
	rounds        int
	left          left
	worst         time.Duration
	swept         bool               // the next start cleaned
	told          []string           // each answer once
	late          []func(*testing.T) // looks that must wait until something may be swept
}

func (r *row) record(took time.Duration, l left, told string) {
	r.worst = max(r.worst, took)
	r.left = r.left.plus(l)
	if told != "" && !slices.Contains(r.told, told) {
		r.told = append(r.told, told)
	}
}

// faultTable collects the rows. A row belongs to the test that makes it.
type faultTable struct {
	mu   sync.Mutex
	rows []*row
}

func (ft *faultTable) add(runtime, name string) *row {
	r := &row{runtime: runtime, name: name}
	ft.mu.Lock()
	defer ft.mu.Unlock()
	ft.rows = append(ft.rows, r)
	return r
}

// settle takes the looks that had to wait.
func (ft *faultTable) settle(t *testing.T) {
	for _, r := range ft.rows {
		for _, look := range r.late {
			look(t)
		}
	}
}

// Each row that docker always plays is one of the table.
func TestFaultsOnDocker(t *testing.T) {
	names := map[string]bool{}
	for _, f := range allFaults() {
		names[f.name] = f.on != "local"
	}
	for _, f := range claudeFaults {
		names["claude: "+f.name] = true
	}
	for _, f := range browserFaults {
		names["browser: "+f.name] = f.on != "local"
	}
	for _, name := range onDocker {
		require.True(t, names[name], name)
	}
}

func (ft *faultTable) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "runtime\tfault\trounds\tcontainers\tprocesses\tlogin copies\tworst time to clean\tthe client was told")
	rows, rounds, count := 0, 0, 0
	slices.SortStableFunc(ft.rows, func(a, b *row) int { return -cmp.Compare(a.runtime, b.runtime) })
	for _, r := range ft.rows {
		if r.rounds == 0 { // skipped
			continue
		}
		told := cmp.Or(strings.Join(r.told, " | "), "-")
		worst := r.worst.Round(time.Millisecond).String()
		if r.swept {
			worst = "the next start"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", r.runtime, r.name, r.rounds,
			len(r.left.containers), len(r.left.processes), len(r.left.copies), worst, told)
		rows++
		rounds += r.rounds
		count += r.left.count()
	}
	_ = w.Flush()
	fmt.Printf("faults: %d rows, %d rounds, %d left\n", rows, rounds, count)
}

// aborted is the message of a call that the bridge had to give up.
var aborted = regexp.MustCompile(`aborted before responding \((.*)\); the request`)

// told is the short form of what the client was told of a call: "-" if nothing.
func (c *client) told(call int) string {
	c.readOn()
	for line := range c.lines {
		c.note(line)
	}
	r, ok := c.answers[float64(call)]
	switch {
	case !ok:
		return "-"
	case r.Error != nil:
		text := r.Error.Message
		if m := aborted.FindStringSubmatch(text); m != nil {
			text = m[1]
		}
		return fmt.Sprintf("%d %.100s", r.Error.Code, text)
	}
	return fmt.Sprintf("%.60s", r.text())
}
