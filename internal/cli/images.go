package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/sandbox/docker/image"
)

// lineWidth is the longest line of progress, in bytes.
const lineWidth = 120

func imagesCommand(status *int) *cobra.Command {
	var host string
	cmd := &cobra.Command{
		Use: "images", Short: "build, pull or list the images that sandboxes start from",
		Long: "Builds, pulls or lists the images of sandboxes. It needs an engine and no clone of the project.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("what about images? Use build, pull or ls")
		},
	}
	cmd.PersistentFlags().StringVar(&host, "docker-host", "", "address of the engine")
	// act runs one of the subcommands with the engine.
	act := func(cmd *cobra.Command, do func(context.Context, *docker.Runtime) error) error {
		rt, err := docker.New(host)
		if err != nil {
			return err
		}
		defer rt.Close()
		if err := do(cmd.Context(), rt); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			*status = exitFail
		}
		return nil
	}
	cmd.AddCommand(imagesBuild(act), imagesPull(act), imagesList(act, status))
	return cmd
}

type imagesAct func(*cobra.Command, func(context.Context, *docker.Runtime) error) error

func imagesBuild(act imagesAct) *cobra.Command {
	var given []string
	var req image.Request
	cmd := &cobra.Command{
		Use: "build [NAME...]", Short: "build images (default: codex and claude)",
		Long: "Builds the images of codex and claude, or those that are named: chrome-devtools and chromium for the provider browser,\n" +
			"gemini with the build arguments AGY_URL, AGY_VERSION and AGY_SHA256 that its vendor's page gives. One that was built\n" +
			"from the same before stays.",
		RunE: func(cmd *cobra.Command, names []string) error {
			if len(names) == 0 {
				names = image.Names()
			}
			if err := image.Check(names...); err != nil {
				return err
			}
			if req.Tag != "" && len(names) != 1 {
				return fmt.Errorf("--tag names one image: name which one is to be built")
			}
			req.Args, req.Getenv = map[string]string{}, os.Getenv
			for _, arg := range given {
				name, value, ok := strings.Cut(arg, "=")
				if !ok || name == "" {
					return fmt.Errorf("--build-arg takes NAME=VALUE, not %q", arg)
				}
				req.Args[name] = value
			}
			return act(cmd, func(ctx context.Context, rt *docker.Runtime) error {
				for _, name := range names {
					one := req
					one.Name = name
					if err := image.Build(ctx, rt, one, sayImages); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringArrayVar(&given, "build-arg", nil, "a build argument `NAME=VALUE`, such as BASE=debian:bookworm-slim")
	cmd.Flags().StringVar(&req.Tag, "tag", "", "name of the image (default: the one that the provider uses)")
	cmd.Flags().BoolVar(&req.Force, "force", false, "build even if nothing changed")
	return cmd
}

func imagesPull(act imagesAct) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "pull [NAME...]", Short: "pull images from a registry of yours (default: codex and claude)",
		Long:    "Pulls PREFIX/NAME of this version and gives it the name that the provider uses.",
		Example: "  mcp-agents images pull --from registry.example.org/team codex",
		RunE: func(cmd *cobra.Command, names []string) error {
			if from == "" {
				return fmt.Errorf("--from says which registry has them, such as registry.example.org/team; " +
					"without one use mcp-agents images build")
			}
			if len(names) == 0 {
				names = image.Names()
			}
			if err := image.Check(names...); err != nil {
				return err
			}
			return act(cmd, func(ctx context.Context, rt *docker.Runtime) error {
				for _, name := range names {
					if err := image.Pull(ctx, rt, name, from, sayImages); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`PREFIX` of the images' names")
	return cmd
}

func imagesList(act imagesAct, status *int) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "list the images, and what to do about those that cannot be used", Args: cobra.NoArgs,
		Long: "Lists the images that the engine holds. It ends with 1 when an image that a provider uses is missing or unusable.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return act(cmd, func(ctx context.Context, rt *docker.Runtime) error {
				usable, err := image.List(ctx, rt, os.Stdout, time.Now())
				if err == nil && !usable {
					*status = exitFail
				}
				return err
			})
		},
	}
}

// sayImages writes one line of progress.
func sayImages(line string) {
	if len(line) > lineWidth {
		line = strings.ToValidUTF8(line[:lineWidth], "") + "…"
	}
	fmt.Fprintln(os.Stderr, "images: "+line)
}
