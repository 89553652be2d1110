// Command startup times any MCP server on stdio from the start of its program to its
// list of tools, so that servers can be compared on one machine:
//
//	go run ./internal/tools/bench/startup [-rounds N] [-config FILE] -- COMMAND ARG… [-- COMMAND ARG…]
//
// Several servers, separated by "--", are started in turn. A configuration file
// of a client (.mcp.json, .vscode/mcp.json, config.toml of Codex; what setup writes)
// adds each of its entries. What is printed is the median of each figure: time
// to the answers of initialize and of tools/list, CPU time of the program and
// its descendants until then, the sum of their peak resident memory, and how
// many tools there are. What an engine does for a server is not counted.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"

	"mcpagents/internal/tools/bench/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

// server is one that is measured.
type server struct {
	name string
	argv []string
	env  []string // added to ours
	all  []measure.Startup
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("startup", flag.ContinueOnError)
	rounds := flags.Int("rounds", 11, "starts of each server that count, behind one that does not")
	config := flags.String("config", "", "file of a client whose servers are measured too")
	limit := flags.Duration("timeout", time.Minute, "longest time of one start")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var servers []*server
	if *config != "" {
		found, err := configured(*config, os.Getenv)
		if err != nil {
			return err
		}
		servers = found
	}
	servers = append(servers, commands(flags.Args())...)
	if len(servers) == 0 || *rounds < 1 {
		return fmt.Errorf("nothing to measure: name a server's command line behind --, or a file with -config, and at least one round")
	}
	for i := range *rounds + 1 {
		for _, s := range servers { // in turn, so that what disturbs the machine disturbs all
			one, err := s.start(ctx, *limit)
			if err != nil {
				return err
			}
			if i > 0 { // the first warms caches
				s.all = append(s.all, one)
			}
		}
	}
	return report(stdout, servers)
}

// commands splits what follows the flags.
func commands(args []string) (servers []*server) {
	var argv []string
	for _, arg := range append(args, "--") {
		if arg != "--" {
			argv = append(argv, arg)
			continue
		}
		if len(argv) > 0 {
			servers = append(servers, &server{name: strings.Join(argv, " "), argv: argv})
		}
		argv = nil
	}
	return servers
}

func (s *server) start(ctx context.Context, limit time.Duration) (measure.Startup, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	return measure.Start(ctx, cmd)
}

func report(w io.Writer, servers []*server) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "initialize\ttools/list\tCPU\tmemory\ttools\tserver")
	for _, s := range servers {
		m := measure.Median(s.all)
		fmt.Fprintf(table, "%.0f ms\t%.0f ms\t%.3f s\t%.1f MiB\t%d\t%.100s\n", m.Initialize.Seconds()*1e3, m.ToolList.Seconds()*1e3,
			m.CPU.Seconds(), float64(m.Memory)/(1<<20), m.Tools, s.name)
	}
	return table.Flush()
}
