package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"mcpagents/internal/app"
	"mcpagents/internal/provider/browser/lease"
	"mcpagents/internal/provider/browser/lease/dockerbox"
	"mcpagents/internal/provider/browser/lease/keeper"
	"mcpagents/internal/sandbox/docker"
)

// leaseFlags are those of the commands below lease docker.
type leaseFlags struct {
	host, image, network string
	workspaces           []string
	request              lease.Request
	generation, reason   string
	parent               int
}

func leaseCommand(status *int) *cobra.Command {
	var f leaseFlags
	root := &cobra.Command{Use: "lease", Short: "lend browsers to front ends that borrow them by a command"}
	engine := &cobra.Command{
		Use: "docker", Short: "lend a Chromium in a container of this machine's engine",
		Long: "For --browser_lease_command: \"mcp-agents lease docker\" is called with acquire, status and release.\n" +
			"The browser ends with its release, and with the process that called acquire.\n\n" +
			"Exit status: 0, 69 when there is no browser or no such lease, 70 when that could not be found out,\n" +
			"75 when the port is taken, 1 for every other failure, 2 for a mistake in the command line.",
	}
	engine.PersistentPreRunE = func(*cobra.Command, []string) error {
		if f.network != "bridge" && f.network != "none" {
			return errors.New("--browser_network must be bridge or none")
		}
		return nil
	}
	flags := engine.PersistentFlags()
	flags.StringVar(&f.host, "docker-host", "", "`ADDRESS` of the engine")
	flags.StringVar(&f.image, "image", docker.DefaultImage(dockerbox.Browser), "`IMAGE` with the browser")
	flags.StringVar(&f.network, "browser_network", "bridge", "network of the browser: bridge or none")
	flags.StringArrayVar(&f.workspaces, "workspace", nil, "`PATH` that the browser may read, for uploads (repeatable)")
	engine.AddCommand(acquireCommand(&f, status), keepCommand(&f, status), statusCommand(&f, status), releaseCommand(&f, status))
	root.AddCommand(engine)
	return root
}

func acquireCommand(f *leaseFlags, status *int) *cobra.Command {
	cmd := &cobra.Command{
		Use: "acquire", Short: "start a browser and write its record", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.parent == 0 {
				f.parent = os.Getppid()
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			keep := []string{self, "lease", "docker", "keep", "--docker-host", f.host, "--image", f.image, "--browser_network", f.network,
				"--session", f.request.Session, "--local-cdp-port", strconv.Itoa(f.request.LocalPort), "--viewport", f.request.Viewport,
				"--app-port", strconv.Itoa(f.request.AppPort), "--parent-pid", strconv.Itoa(f.parent)}
			for _, w := range f.workspaces {
				keep = append(keep, "--workspace", w)
			}
			*status, err = keeper.Acquire(cmd.Context(), keep, f.request, os.Stdout)
			report(err)
			return nil
		},
	}
	requestFlags(cmd, f)
	return cmd
}

func keepCommand(f *leaseFlags, status *int) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keep", Short: "hold a browser for acquire", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lent := app.LentBrowser{DockerHost: f.host, Image: f.image, Network: f.network, Workspaces: f.workspaces}
			if err := lent.Keep(cmd.Context(), f.request, f.parent, os.Stdin, os.Stdout); err != nil {
				*status = exitFail
			}
			return nil
		},
	}
	requestFlags(cmd, f)
	return cmd
}

func requestFlags(cmd *cobra.Command, f *leaseFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.request.Session, "session", "", "`UUID` of the borrower")
	flags.IntVar(&f.request.LocalPort, "local-cdp-port", 0, "`PORT` of 127.0.0.1 for the browser's control port")
	flags.StringVar(&f.request.Viewport, "viewport", "1440x900", "size of the browser's window, `WxH`")
	flags.IntVar(&f.request.AppPort, "app-port", 0, "`PORT` of 127.0.0.1 that the browser reaches under the same address; 0 means none")
	flags.IntVar(&f.parent, "parent-pid", 0, "`PID` of the process with which the lease ends; 0 means whoever called")
	for _, name := range []string{"session", "local-cdp-port"} {
		_ = cmd.MarkFlagRequired(name)
	}
}

func statusCommand(f *leaseFlags, status *int) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "tell by the exit status whether the lease stands", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			*status, err = keeper.Status(cmd.Context(), f.request.Session, f.generation)
			report(err)
			return nil
		},
	}
	leaseNameFlags(cmd, f)
	return cmd
}

func releaseCommand(f *leaseFlags, status *int) *cobra.Command {
	cmd := &cobra.Command{
		Use: "release", Short: "give the browser back", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := keeper.Release(cmd.Context(), f.request.Session, f.generation); err != nil {
				report(err)
				*status = exitFail
			}
			return nil
		},
	}
	leaseNameFlags(cmd, f)
	cmd.Flags().StringVar(&f.reason, "reason", "", "idle or shutdown; makes no difference here")
	return cmd
}

func leaseNameFlags(cmd *cobra.Command, f *leaseFlags) {
	cmd.Flags().StringVar(&f.request.Session, "session", "", "`UUID` of the borrower")
	cmd.Flags().StringVar(&f.generation, "generation", "", "`TOKEN` of the lease; empty means whichever the session has")
	_ = cmd.MarkFlagRequired("session")
}

// report says why on stderr: callers of the helper protocol read it.
func report(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
