package toolserver

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The official client lists the tools, calls one with progress, cancels one and
// goes on.
func TestSDKClient(t *testing.T) {
	started := make(chan struct{})
	ended := make(chan error, 1)
	hang := Tool{Name: "hang", InputSchema: anySchema, Call: func(ctx context.Context, _ Call) (Result, error) {
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return Result{}, ctx.Err()
	}}
	server, err := New(Config{
		Provider: "test", Name: "mcp-agents", Version: "1.2.3",
		Tools: append(testTools(new(record)), hang), Log: plainLog(io.Discard, 0),
	})
	require.NoError(t, err)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	var serving sync.WaitGroup
	serving.Go(func() { assert.NoError(t, server.Serve(t.Context(), in, out)) })
	defer serving.Wait()

	progress := make(chan *mcp.ProgressNotificationParams, 9)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { progress <- req.Params },
	})
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	assert.Equal(t, "2025-11-25", session.InitializeResult().ProtocolVersion)
	assert.Equal(t, &mcp.Implementation{Name: "mcp-agents", Version: "1.2.3"}, session.InitializeResult().ServerInfo)
	require.NoError(t, session.Ping(t.Context(), nil))

	list, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	assert.Equal(t, []string{"ping", "zebra", "sleep", "beat"}, names[:4], "our order, not the alphabet's")

	params := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"to": 1}}
	params.SetProgressToken("token")
	result, err := session.CallTool(t.Context(), params)
	require.NoError(t, err)
	assert.False(t, result.IsError)
	assert.Equal(t, "counted", result.Content[0].(*mcp.TextContent).Text)
	got := <-progress
	assert.Equal(t, "token", got.ProgressToken)
	assert.Equal(t, "step 1", got.Message)

	result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"})
	require.NoError(t, err)
	assert.True(t, result.IsError)
	assert.Equal(t, "Unknown tool: nothing", result.Content[0].(*mcp.TextContent).Text)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-ended, ErrCancelled)

	result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "job"})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"jobId": 7.0, "state": "<done>"}, result.StructuredContent)
}
