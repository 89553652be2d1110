package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"mcpagents/internal/config"
	"mcpagents/internal/credentials"
	"mcpagents/internal/doctor"
	"mcpagents/internal/plain"
	"mcpagents/internal/provider/browser/lease/dockerbox"
	"mcpagents/internal/sandbox/docker"
	"mcpagents/internal/version"
)

// Checks are what doctor looks at for a server with these options. The function
// that comes with them frees what they used.
func Checks(opts config.Options) ([]doctor.Check, func(), error) {
	rt, err := docker.New(opts.Sandbox.DockerHost)
	if err != nil {
		return nil, nil, err
	}
	checks := []doctor.Check{{Name: "program", Look: func(context.Context) (doctor.State, string) {
		if err := supported(opts); err != nil {
			return doctor.Failed, err.Error()
		}
		return doctor.OK, "mcp-agents " + version.Version + ", provider " + string(opts.Provider)
	}}}
	private := rt.Sockets()
	if opts.Provider == config.ProviderBrowser && len(opts.Browser.LeaseCommand) > 0 {
		checks = append(checks, doctor.Check{Name: "helper", Look: func(context.Context) (doctor.State, string) { return lookForHelper(opts) }})
	} else if opts.Sandbox.Runtime == config.RuntimeLocal {
		checks = append(checks, doctor.Check{Name: "cli", Look: func(context.Context) (doctor.State, string) { return lookForCLI(opts) }})
	} else {
		checks = append(checks,
			doctor.Check{Name: "engine", Look: func(ctx context.Context) (doctor.State, string) { return lookAtEngine(ctx, rt) }},
			doctor.Check{Name: "image", Needs: "engine", Look: func(ctx context.Context) (doctor.State, string) { return lookAtImage(ctx, rt, imageOf(opts)) }})
		if opts.Provider == config.ProviderBrowser {
			checks = append(checks, doctor.Check{Name: "browser", Needs: "engine",
				Look: func(ctx context.Context) (doctor.State, string) { return lookAtImage(ctx, rt, browserImageOf(opts)) }})
		}
	}
	if source, ok := loginOf(opts); ok {
		private = append(private, source.Directory())
		checks = append(checks, doctor.Check{Name: "login", Look: func(ctx context.Context) (doctor.State, string) { return lookAtLogin(ctx, source, opts) }})
	}
	if opts.Provider != config.ProviderGemini { // it has no workspace
		checks = append(checks, doctor.Check{Name: "workspace", Look: func(context.Context) (doctor.State, string) { return lookAtWorkspace(opts, private) }})
	}
	return checks, func() { _ = rt.Close() }, nil
}

// loginOf is where the provider's login is; nothing where this program knows
// too little of it to judge it.
func loginOf(opts config.Options) (credentials.Source, bool) {
	switch opts.Provider {
	case config.ProviderCodex:
		return credentials.Codex(opts.Sandbox.AuthSource), true
	case config.ProviderClaude:
		return credentials.Claude(opts.Sandbox.AuthSource), true
	}
	return credentials.Source{}, false
}

func lookAtEngine(ctx context.Context, rt *docker.Runtime) (doctor.State, string) {
	e, err := rt.Engine(ctx)
	if err != nil {
		return doctor.Failed, err.Error()
	}
	kind := "Docker"
	if e.Podman {
		kind = "Podman"
	}
	text := fmt.Sprintf("%s %s, API %s, cgroup v%s, at %s", kind, e.Version, e.API, e.Cgroup, e.Host)
	if e.Found != "" {
		text += " (" + e.Found + ")"
	}
	if e.Rootless {
		text += ", rootless"
	}
	if !e.Seccomp {
		return doctor.Warning, text + ": it cannot filter system calls, so sandboxes have a barrier less"
	}
	return doctor.OK, text
}

// imageOf is the image of a provider's sandboxes: for the browser that of the
// tool server.
func imageOf(opts config.Options) string {
	name := string(opts.Provider)
	if opts.Provider == config.ProviderBrowser {
		name = "chrome-devtools"
	}
	return cmp.Or(opts.Sandbox.Image, docker.DefaultImage(name))
}

// browserImageOf is the image of the embedded lease's browser.
func browserImageOf(opts config.Options) string {
	return cmp.Or(opts.Browser.Image, docker.DefaultImage(dockerbox.Browser))
}

func lookAtImage(ctx context.Context, rt *docker.Runtime, ref string) (doctor.State, string) {
	image, err := rt.Look(ctx, ref)
	if absent, ok := errors.AsType[*docker.ImageError](err); ok {
		if absent.Pulled {
			return doctor.Warning, absent.Error()
		}
		return doctor.Missing, plain.Text(absent.Error())
	}
	if err != nil {
		return doctor.Failed, err.Error()
	}
	text := ref
	if image.CLIVersion != "" {
		text += " with version " + plain.Text(image.CLIVersion) + " of the CLI"
	}
	return doctor.OK, text
}

func lookForHelper(opts config.Options) (doctor.State, string) {
	path, err := exec.LookPath(opts.Browser.LeaseCommand[0])
	if err != nil {
		return doctor.Missing, "the lease helper " + opts.Browser.LeaseCommand[0] + " is not on PATH: install it, or name another with --browser_lease_command"
	}
	return doctor.OK, path
}

func lookForCLI(opts config.Options) (doctor.State, string) {
	name := map[config.Provider]string{config.ProviderGemini: "agy"}[opts.Provider]
	if name == "" {
		name = string(opts.Provider)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return doctor.Missing, name + " is not on PATH: install it, or use --runtime docker"
	}
	return doctor.Warning, path + "; the local runtime isolates no file system"
}

// lookAtLogin says what a login is, and never what is in it.
func lookAtLogin(ctx context.Context, source credentials.Source, opts config.Options) (doctor.State, string) {
	snapshot, err := credentials.Take(ctx, source)
	if err != nil {
		return doctor.Failed, err.Error()
	}
	defer snapshot.Release()
	if missing := snapshot.Missing(); missing != nil {
		switch name := claudeKey(ctx, source, opts); {
		case name != "":
			return doctor.OK, "a key in " + name
		case opts.Sandbox.ModelBaseURL != "":
			return doctor.OK, "none, and --model_base_url may need none"
		}
		if opts.Sandbox.Runtime == config.RuntimeLocal { // the CLI is on this machine, and logs in by itself
			return doctor.Missing, missing.Error()
		}
		return doctor.Missing, missing.Error() + ", or use mcp-agents login"
	}
	if name := snapshot.KeyVariable(); name != "" {
		return doctor.OK, "a key in " + name
	}
	if end := snapshot.Expires(); !end.IsZero() && time.Now().After(end) {
		return doctor.Warning, "its access token ended at " + end.Format(time.RFC3339) + ": the next call refreshes it, or log in again"
	}
	return doctor.OK, "there is one in " + source.Directory()
}

// claudeKey is where Claude Code finds a key when there is no login.
func claudeKey(ctx context.Context, source credentials.Source, opts config.Options) string {
	if opts.Provider != config.ProviderClaude {
		return ""
	}
	for _, name := range credentials.ClaudeKeyVariables {
		if strings.TrimSpace(os.Getenv(name)) != "" {
			return name
		}
	}
	if _, hasKey, _ := credentials.ClaudeConfig(ctx, source); hasKey {
		return credentials.ClaudeConfigFile
	}
	return ""
}

func lookAtWorkspace(opts config.Options, private []string) (doctor.State, string) {
	dir, err := os.Getwd()
	if err != nil {
		return doctor.Failed, err.Error()
	}
	roots, err := resolveRoots(opts, dir, private)
	if err != nil {
		return doctor.Failed, err.Error()
	}
	text := strings.Join(roots.Dirs(), ", ")
	if os.Geteuid() == 0 && ownedByRoot(roots.Dirs()) && opts.Sandbox.User == nil && opts.Sandbox.Runtime == config.RuntimeDocker {
		return doctor.Warning, text + ": it is root's, so the CLI runs as root in its container: give it to a user, or use --user"
	}
	return doctor.OK, text
}
