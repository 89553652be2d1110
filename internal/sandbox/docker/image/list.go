package image

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"

	"mcpagents/internal/plain"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/version"
)

// Pull pulls from.NAME:VERSION and gives it the name that the provider uses. An
// image of another protocol is refused, and named nothing.
func Pull(ctx context.Context, e Engine, name, from string, say func(string)) error {
	ref := strings.TrimSuffix(from, "/") + "/" + name + ":" + version.Version
	if err := e.PullImage(ctx, ref, say); err != nil {
		return err
	}
	if _, err := e.Inspect(ctx, ref); err != nil {
		return err
	}
	if err := e.TagImage(ctx, ref, docker.DefaultImage(name)); err != nil {
		return err
	}
	say(docker.DefaultImage(name) + " is " + ref)
	return nil
}

// List writes a table of the images that an engine holds, and of those that the
// providers use and that it lacks. It reports whether all of these can be used.
func List(ctx context.Context, e Engine, w io.Writer, now time.Time) (bool, error) {
	held, err := e.Images(ctx)
	if err != nil {
		return false, err
	}
	slices.SortFunc(held, func(a, b docker.Held) int { return strings.Compare(a.Ref, b.Ref) })
	usable := true
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tCLI\tPROTOCOL\tSIZE\tAGE\tSTATE")
	var have []string
	for _, h := range held {
		have = append(have, h.Ref)
		state := "ok"
		if h.CLI == "" {
			state = "the front end"
		}
		if h.Problem != nil {
			state = strings.TrimPrefix(h.Problem.Error(), "image "+h.Ref+" ")
			usable = usable && !isDefault(h.Ref)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", plain.Text(h.Ref), plain.Text(strings.TrimSpace(h.CLI+" "+h.Version)), plain.Text(h.Protocol),
			units.HumanSizeWithPrecision(float64(h.Size), 3), units.HumanDuration(now.Sub(h.Created)), plain.Text(state))
	}
	for _, name := range Names() {
		if ref := docker.DefaultImage(name); !slices.Contains(have, ref) {
			usable = false
			fmt.Fprintf(table, "%s\t\t\t\t\tmissing: mcp-agents images build %s\n", ref, name)
		}
	}
	return usable, table.Flush()
}

func isDefault(ref string) bool {
	return slices.ContainsFunc(Names(), func(name string) bool { return ref == docker.DefaultImage(name) })
}
