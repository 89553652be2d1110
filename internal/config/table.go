package config

import (
	"log/slog"
	"slices"
	"time"
)

// The defaults of claude, which has two deadlines, and of the other providers
// as far as --timeout does not replace them.
const (
	defaultCodexTimeout     = 7200 * time.Second
	defaultClaudeTimeout    = 900 * time.Second
	defaultClaudeJobTimeout = 7200 * time.Second
	defaultBrowserTimeout   = 600 * time.Second
	defaultGeminiTimeout    = 300 * time.Second
)

// defaultClaudeWarm are claude's spare sandboxes: every review costs a new one.
const defaultClaudeWarm = 1

// buildTable declares every flag, once.
func buildTable() []Flag {
	return shown(slices.Concat(
		generalFlags(), codexFlags(), withEnv(codexModelFlags()...), withEnv(claudeFlags()...),
		browserFlags(), withEnv(sandboxFlags()...), withEnv(mountFlags()...), withEnv(serverFlags()...),
	))
}

func generalFlags() []Flag {
	return []Flag{
		{Name: "help", Short: "h", Group: GroupGeneral, action: ActionHelp,
			Help: "Print this text and exit."},
		{Name: "version", Short: "v", Group: GroupGeneral, action: ActionVersion,
			Help: "Print the version and exit."},
		{Name: "provider", Value: "name", Group: GroupGeneral, initial: string(ProviderCodex),
			set:  into(anything, func(o *Options) *string { return (*string)(&o.Provider) }),
			Help: "claude, gemini, codex or browser."},
		{Name: "timeout", Value: "seconds", Group: GroupGeneral,
			Default: "codex 7200; claude 900, browser 600, gemini 300; claude jobs 7200",
			set:     setTimeout,
			Help: "Hard deadline of one request. For claude it is the deadline of blocking calls and of " +
				"background jobs alike."},
	}
}

func setTimeout(o *Options, value string) error {
	d, err := positiveSeconds(value)
	if err != nil {
		return err
	}
	o.Codex.Timeout, o.Claude.Timeout, o.Claude.JobTimeout = d, d, d
	o.Browser.Timeout, o.Gemini.Timeout = d, d
	return nil
}

func codexFlags() []Flag {
	return []Flag{
		{Name: "model", Value: "name", Group: GroupCodex, Default: "the first of --codex_models: gpt-5.6-sol",
			set:  into(anything, func(o *Options) *string { return &o.Codex.Model }),
			Help: "Model of the Codex sessions that name none; any string."},
		{Name: "model_reasoning_effort", Value: "effort", Group: GroupCodex, initial: "xhigh", emptyInitial: true,
			set:  into(anything, func(o *Options) *string { return &o.Codex.ReasoningEffort }),
			Help: "Reasoning effort of the Codex sessions that name none; any string."},
		{Name: "sandbox_mode", Value: "mode", Group: GroupCodex, initial: "workspace-write", emptyInitial: true,
			set:  into(anything, func(o *Options) *string { return &o.Codex.SandboxMode }),
			Help: "Codex's own sandbox: read-only, workspace-write or danger-full-access."},
		{Name: "approval_policy", Value: "policy", Group: GroupCodex, initial: "never", emptyInitial: true,
			set: into(anything, func(o *Options) *string { return &o.Codex.ApprovalPolicy }),
			Help: "untrusted, on-failure, on-request or never, as far as the installed Codex takes it; one that " +
				"it refuses is reported with the list."},
		{Name: "codex-workspace-network", Value: "true|false", Group: GroupCodex, initial: "true",
			Env: "MCP_AGENTS_CODEX_WORKSPACE_NETWORK_ACCESS", only: ProviderCodex, emptyEnv: true,
			set:  into(boolean, func(o *Options) *bool { return &o.Codex.WorkspaceNetwork }),
			Help: "Network access of commands in Codex's workspace-write sandbox."},
		{Name: "goal", Value: "text", Group: GroupCodex,
			set:  into(nonBlankOrNone, func(o *Options) *string { return &o.Codex.Goal }),
			Help: "Persistent objective of every Codex session; a call's own goal replaces it."},
		{Name: "codex_idle_timeout", Value: "seconds", Group: GroupCodex, initial: "600",
			set:  into(seconds, func(o *Options) *time.Duration { return &o.Codex.IdleTimeout }),
			Help: "End a request after this long without activity of Codex; 0 disables it."},
		{Name: "codex_cancel_grace", Value: "seconds", Group: GroupCodex, initial: "30",
			set:  into(seconds, func(o *Options) *time.Duration { return &o.Codex.CancelGrace }),
			Help: "How long Codex may take to confirm a cancelled request."},
		{Name: "codex_status_interval", Value: "seconds", Group: GroupCodex, initial: "30",
			set: into(atMostMaxTimer, func(o *Options) *time.Duration { return &o.Codex.StatusInterval }),
			Help: "Shortest time between two progress steps of a background job's status; 0 makes every change " +
				"a step."},
	}
}

func codexModelFlags() []Flag {
	return []Flag{
		{Name: "codex_models", Value: "a,b", Group: GroupCodex, initial: "gpt-5.6-sol,gpt-5.6-terra", emptyInitial: true,
			set:  into(modelNames, func(o *Options) *[]string { return &o.Codex.Models }),
			Help: "Models that callers may choose from; the first is the default of --model."},
	}
}

func claudeFlags() []Flag {
	return []Flag{
		{Name: "claude_model", Value: "name", Group: GroupClaude, initial: "claude-opus-4-8", emptyInitial: true,
			set:  into(anything, func(o *Options) *string { return &o.Claude.Model }),
			Help: "Model of Claude Code."},
		{Name: "claude_effort", Value: "effort", Group: GroupClaude, initial: "xhigh", emptyInitial: true,
			set:  into(anything, func(o *Options) *string { return &o.Claude.Effort }),
			Help: "Effort of Claude Code."},
		{Name: "max_result_chars", Value: "number", Group: GroupClaude, initial: "40000",
			set: into(bounded(minResultChars, maxResultChars), func(o *Options) *int64 { return &o.Server.MaxResultChars }),
			Help: "Longest answer of a blocking call, for claude and gemini. Clients refuse what is much longer; the rest " +
				"of one of claude's is read with claude-result."},
		{Name: "trust_workspace", Group: GroupClaude,
			set: into(boolean, func(o *Options) *bool { return &o.Claude.TrustWorkspace }),
			Help: "Let Claude Code run the hooks and MCP servers that the workspace itself configures. Without it " +
				"they are off, because any repository could use them to send the login away."},
	}
}

func browserFlags() []Flag {
	flags := []Flag{
		{Name: "browser_lease_command", Value: "command", late: true, subject: "browser lease command",
			Default: "the embedded lease; required with --runtime local",
			set:     into(ParseCommand, func(o *Options) *[]string { return &o.Browser.LeaseCommand }),
			Help:    "Helper that lends browsers: a command string, run without a shell, or a JSON argv."},
		{Name: "browser_command", Value: "command", late: true, subject: "browser command",
			Default: "pinned in the image; with --runtime local the installed one, else npx chrome-devtools-mcp@latest",
			set:     into(ParseCommand, func(o *Options) *[]string { return &o.Browser.Command }),
			Help:    "The DevTools server: a command string, run without a shell, or a JSON argv."},
		{Name: "browser_idle_timeout", Value: "seconds", initial: "600",
			set:  into(seconds, func(o *Options) *time.Duration { return &o.Browser.IdleTimeout }),
			Help: "Give an unused browser back after this long; 0 disables it."},
		{Name: "browser_viewport", Value: "WxH", initial: "1440x900", subject: "MCP_AGENTS_BROWSER_VIEWPORT",
			set:  into(viewport, func(o *Options) *string { return &o.Browser.Viewport }),
			Help: "Size of the page."},
		{Name: "browser_app_port", Value: "port",
			set:  into(appPort, func(o *Options) *int { return &o.Browser.AppPort }),
			Help: "Local port of the application under test, which the browser reaches under the same address."},
		{Name: "browser_network", Value: "mode", initial: "bridge",
			set: into(browserNetwork, func(o *Options) *string { return &o.Browser.Network }),
			Help: "Network of the embedded lease's browser: bridge, or none for the application's port and nothing else; " +
				"--network none counts as well."},
		{Name: "browser_image", Value: "image", Default: "the image of this build",
			set:  into(image, func(o *Options) *string { return &o.Browser.Image }),
			Help: "Image with the embedded lease's browser; --image is that of the DevTools server."},
		{Name: "browser_log_file", Value: "path",
			set:  into(notBlank, func(o *Options) *string { return &o.Browser.LogFile }),
			Help: "Log file of the DevTools server."},
		{Name: "browser_allowed_url_pattern", Value: "pattern", Repeatable: true, split: splitURLPatterns,
			set: appending(notBlank, func(o *Options) *[]string { return &o.Browser.AllowedURLPatterns }),
			Help: "Limit the browser to addresses of this pattern. The variable holds one pattern or a JSON array; " +
				"a flag replaces it."},
	}
	for i := range flags {
		flags[i].Group, flags[i].only, flags[i].emptyEnv = GroupBrowser, ProviderBrowser, true
	}
	return withEnv(flags...)
}

func sandboxFlags() []Flag {
	return []Flag{
		{Name: "runtime", Value: "docker|local", Group: GroupSandbox, initial: string(RuntimeDocker),
			set: into(oneOf(RuntimeDocker, RuntimeLocal), func(o *Options) *Runtime { return &o.Sandbox.Runtime }),
			Help: "What makes sandboxes. local starts the CLI found on PATH as a supervised process tree and " +
				"isolates no file system."},
		{Name: "docker_host", Value: "address", Group: GroupSandbox, Default: "as the docker command finds it",
			set:  into(engine, func(o *Options) *string { return &o.Sandbox.DockerHost }),
			Help: "Address of the container engine; wins over DOCKER_HOST and the current context."},
		{Name: "image", Value: "ref", Group: GroupSandbox, Default: "the provider's own",
			set:  into(image, func(o *Options) *string { return &o.Sandbox.Image }),
			Help: "Image of the sandboxes."},
		{Name: "network", Value: "mode", Group: GroupSandbox, initial: "bridge",
			set:  into(network, func(o *Options) *string { return &o.Sandbox.Network }),
			Help: "bridge, none, host, container:ID or the name of a network."},
		{Name: "user", Value: "uid:gid", Group: GroupSandbox, Default: "yours, or the workspace owner's for root",
			set:  into(user, func(o *Options) **User { return &o.Sandbox.User }),
			Help: "Who the sandbox runs as, in numbers."},
		{Name: "memory", Value: "size", Group: GroupSandbox, initial: "4g",
			set:  into(sized(minMemory, maxMemory), func(o *Options) *int64 { return &o.Sandbox.MemoryBytes }),
			Help: "Memory limit of a sandbox, its temporary files included."},
		{Name: "cpus", Value: "number", Group: GroupSandbox, initial: "2",
			set:  into(cpus, func(o *Options) *int64 { return &o.Sandbox.NanoCPUs }),
			Help: "CPU limit of a sandbox."},
		{Name: "pids-limit", Value: "number", Group: GroupSandbox, initial: "512",
			set:  into(bounded(minPids, maxPids), func(o *Options) *int64 { return &o.Sandbox.PidsLimit }),
			Help: "Limit of processes and threads in a sandbox."},
		{Name: "stop_grace", Value: "seconds", Group: GroupSandbox, initial: "5",
			set:  into(seconds, func(o *Options) *time.Duration { return &o.Sandbox.StopGrace }),
			Help: "Time between TERM and KILL in a sandbox."},
		{Name: "lifeline_timeout", Value: "seconds", Group: GroupSandbox, initial: "60",
			set:  into(positiveSeconds, func(o *Options) *time.Duration { return &o.Sandbox.LifelineTimeout }),
			Help: "A sandbox ends itself when it has heard nothing from this server for so long."},
		{Name: "warm", Value: "number", Group: GroupSandbox, Default: "claude 1, the others 0",
			set:  into(bounded(0, maxWarm), func(o *Options) *int64 { return &o.Sandbox.Warm }),
			Help: "Spare sandboxes that wait for a call, each used once."},
		{Name: "self-container", Value: "id", Group: GroupSandbox, Default: "found",
			set:  into(plainName, func(o *Options) *string { return &o.Sandbox.SelfContainer }),
			Help: "The container that this server itself runs in, where it cannot be found."},
		{Name: "oci_runtime", Value: "name", Group: GroupSandbox, Default: "the engine's",
			set:  into(plainName, func(o *Options) *string { return &o.Sandbox.OCIRuntime }),
			Help: "OCI runtime of the sandboxes, for example runsc."},
	}
}

// mountFlags declares what goes into a sandbox.
func mountFlags() []Flag {
	return []Flag{
		{Name: "workspace", Value: "path", Group: GroupSandbox, Repeatable: true, split: splitPaths,
			Default: "the startup directory",
			set:     appending(notBlank, func(o *Options) *[]string { return &o.Sandbox.Workspaces }),
			Help:    "Directory that agents may work in. The variable holds a path list."},
		{Name: "workspace_access", Value: "rw|ro", Group: GroupSandbox, initial: string(AccessReadWrite),
			set:  into(oneOf(AccessReadWrite, AccessReadOnly), func(o *Options) *Access { return &o.Sandbox.Access }),
			Help: "Whether agents may write to the workspaces."},
		{Name: "env", Value: "name", Group: GroupSandbox, Repeatable: true, split: splitCommas,
			set: appending(envName, func(o *Options) *[]string { return &o.Sandbox.Env }),
			Help: "Environment variable of this server to hand to the CLI, by name; its value never enters the " +
				"container's configuration. The variable holds a comma-separated list."},
		{Name: "ca_file", Value: "path", Group: GroupSandbox,
			set:  into(notBlank, func(o *Options) *string { return &o.Sandbox.CAFile }),
			Help: "Certificate authorities, in PEM, that the CLI is to trust as well."},
		{Name: "auth_source", Value: "path", Group: GroupSandbox, Default: "the CLI's own place in your home",
			set:  into(notBlank, func(o *Options) *string { return &o.Sandbox.AuthSource }),
			Help: "Where the login is copied from."},
		{Name: "model_base_url", Value: "url", Group: GroupSandbox, Default: "the vendor's",
			set:  into(baseURL, func(o *Options) *string { return &o.Sandbox.ModelBaseURL }),
			Help: "Gateway or scripted model to use in place of the vendor's endpoint."},
	}
}

func serverFlags() []Flag {
	return []Flag{
		{Name: "handshake_timeout", Value: "seconds", Group: GroupServer, initial: "5",
			set: into(positiveSeconds, func(o *Options) *time.Duration { return &o.Server.HandshakeTimeout }),
			Help: "How long the CLI of codex and browser may take to answer initialize before this server answers " +
				"in its place."},
		{Name: "stdio_idle_timeout", Value: "seconds", Group: GroupServer, initial: "0",
			set: into(seconds, func(o *Options) *time.Duration { return &o.Server.StdioIdleTimeout }),
			Help: "End after this long without a message, an open request or a live job; 0 never does, which is " +
				"right for most clients: they do not restart a server."},
		{Name: "parent_watchdog", Value: "seconds", Group: GroupServer, initial: "0",
			set:  into(seconds, func(o *Options) *time.Duration { return &o.Server.ParentWatchdog }),
			Help: "Look this often whether the parent process lives and end with it; 0 never looks."},
		{Name: "max_message_bytes", Value: "size", Group: GroupServer, initial: "16m",
			set:  into(sized(minMessage, maxMessage), func(o *Options) *int64 { return &o.Server.MaxMessageBytes }),
			Help: "Largest JSON-RPC message that is parsed as a whole."},
		{Name: "log_level", Value: "level", Group: GroupServer, initial: "info",
			set:  into(logLevel, func(o *Options) *slog.Level { return &o.Server.LogLevel }),
			Help: "debug, info, warn or error. Logs go to stderr."},
		{Name: "log_format", Value: "text|json", Group: GroupServer, initial: string(LogText),
			set:  into(oneOf(LogText, LogJSON), func(o *Options) *LogFormat { return &o.Server.LogFormat }),
			Help: "Form of the log."},
	}
}
