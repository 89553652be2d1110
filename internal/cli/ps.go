package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"mcpagents/internal/app"
	"mcpagents/internal/plain"
	"mcpagents/internal/sandbox"
)

func psCommand(status *int) *cobra.Command {
	var runtime, host string
	var all bool
	cmd := &cobra.Command{
		Use: "ps", Short: "list the sandboxes whose commands run as this user", Args: cobra.NoArgs,
		Long: "Lists sandboxes in any state, with their age and the user of their commands. Without --all those whose commands run\n" +
			"as another user are left out, unless root asks: those of other users of the engine, and also your own with --user\n" +
			"or whose user is the workspace's owner.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rt, err := app.RuntimeByName(runtime, host)
			if err != nil {
				return err
			}
			if c, ok := rt.(io.Closer); ok {
				defer c.Close()
			}
			list, err := rt.List(cmd.Context())
			if err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
				*status = exitFail
				return nil
			}
			if !all {
				list = ofUser(list, os.Getuid())
			}
			return writeSandboxes(os.Stdout, list, time.Now())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those whose commands run as another user as well")
	cmd.Flags().StringVar(&runtime, "runtime", "docker", "docker or local")
	cmd.Flags().StringVar(&host, "docker-host", "", "address of the engine")
	return cmd
}

// ofUser are the sandboxes whose commands run as the user. Root, and a user on a
// system without user numbers (uid below 0), has them all.
func ofUser(list []sandbox.Listed, uid int) []sandbox.Listed {
	if uid <= 0 {
		return list
	}
	return slices.DeleteFunc(list, func(l sandbox.Listed) bool {
		user, _, _ := strings.Cut(l.User, ":")
		return user != fmt.Sprint(uid)
	})
}

// writeSandboxes writes a table, the oldest first.
func writeSandboxes(w io.Writer, list []sandbox.Listed, now time.Time) error {
	slices.SortStableFunc(list, func(a, b sandbox.Listed) int { return a.Created.Compare(b.Created) })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tPROVIDER\tSTATE\tAGE\tUSER\tFRONT END\tIMAGE")
	for _, l := range list {
		age := ""
		if !l.Created.IsZero() {
			age = units.HumanDuration(now.Sub(l.Created))
		}
		fmt.Fprintf(table, "%.12s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.ID, plain.Text(l.Provider), plain.Text(l.State), age,
			plain.Text(l.User), plain.Text(l.Instance), plain.Text(l.Image))
	}
	return table.Flush()
}
