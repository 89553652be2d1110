package stdio

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mcpagents/internal/mcp"
)

// 20 requests and the end of the input in one piece: 20 answers.
func TestServeDrain(t *testing.T) {
	var in strings.Builder
	want := []string{}
	for i := range 20 {
		in.WriteString(call(fmt.Sprint(i)) + "\n")
		want = append(want, "line "+ok(fmt.Sprint(i)))
	}
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, req *Request) (*mcp.Response, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return echo(ctx, req)
		}
		got, err := serve(t, in.String(), slow, Options{})
		require.NoError(t, err)
		assert.ElementsMatch(t, want, got)

		got, err = serve(t, in.String(), func(ctx context.Context, req *Request) (*mcp.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, Options{DrainTimeout: -1})
		require.NoError(t, err)
		assert.Empty(t, got, "without a drain the answers are lost")
	})
}

func TestServeDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, hold(nil), Options{DrainTimeout: 5 * time.Second})
		d.send(holdCall)
		started := time.Now()
		out, err := d.finish()
		require.NoError(t, err)
		assert.Empty(t, out, "a handler that returns its context's error answers nothing")
		assert.Equal(t, 5*time.Second, time.Since(started))
	})
	t.Run("handler that ignores its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			d := drive(t, func(context.Context, *Request) (*mcp.Response, error) { <-release; return nil, nil }, Options{})
			d.send(holdCall)
			started := time.Now()
			_, err := d.finish()
			require.ErrorContains(t, err, "handlers did not return within 10s")
			assert.Equal(t, DefaultDrainTimeout+DefaultStopTimeout, time.Since(started))
		})
	})
	t.Run("client that does not read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, echo, Options{})
			d.out.set(true, nil)
			d.send(call("1") + "\n")
			_, err := d.finish()
			require.ErrorIs(t, err, ErrOutputStalled)
		})
	})
}

func TestServeSlowHandlerDoesNotStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := drive(t, hold(release), Options{})
		d.send(holdCall)
		d.send(call("1") + "\n")
		assert.Equal(t, ok("1")+"\n", d.out.String())
		close(release)
		out, err := d.finish()
		require.NoError(t, err)
		assert.Equal(t, ok("1")+"\n"+strings.Replace(ok(`"h"`), `"m"`, `"hold"`, 1)+"\n", out)
	})
}

// The client stops reading, sends 200 calls and then a cancel: the cancel
// arrives, and when reading resumes no answer is missing.
func TestServeBlockedOutputDoesNotStopReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held *Request
		cancelled := false
		d := drive(t, func(ctx context.Context, req *Request) (*mcp.Response, error) {
			if req.Method == "hold" {
				<-ctx.Done()
				cancelled = true
				return nil, ctx.Err()
			}
			return echo(ctx, req)
		}, Options{Preempt: func(req *Request) {
			switch req.Method {
			case "hold":
				held = req
			case "cancel":
				held.Cancel()
			}
		}})
		d.out.set(true, nil)
		d.send(holdCall)
		want := []string{}
		for i := range 200 {
			d.send(call(fmt.Sprint(i)) + "\n")
			want = append(want, "line "+ok(fmt.Sprint(i)))
		}
		d.send(`{"method":"cancel"}` + "\n")
		assert.True(t, cancelled)
		assert.Empty(t, d.out.String())
		d.out.set(false, nil)
		out, err := d.finish()
		require.NoError(t, err)
		assert.ElementsMatch(t, want, readAll(strings.NewReader(out), ReaderOptions{}))
	})
}

// What waits for a blocked output is bounded: reading pauses, loses nothing and
// goes on.
func TestServePendingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := 0
		d := drive(t, echo, Options{MaxPending: 100 << 10, Preempt: func(*Request) { taken++ }})
		d.out.set(true, nil)
		go func() {
			for i := range 1000 {
				if _, err := io.WriteString(d.in, call(fmt.Sprint(i))+"\n"); err != nil {
					return
				}
			}
			d.in.Close()
		}()
		synctest.Wait()
		assert.Less(t, taken, 102)
		assert.Greater(t, taken, 50)
		d.out.set(false, nil)
		<-d.ended
		require.NoError(t, d.err)
		assert.Equal(t, 1000, strings.Count(d.out.String(), "\n"))
	})
	t.Run("the end does not wait for room", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := drive(t, hold(nil), Options{MaxPending: 1})
			d.send(holdCall)
			d.cancel()
			<-d.ended
			require.ErrorIs(t, d.err, context.Canceled)
		})
	})
}

func TestServeWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(t, echo, Options{WriteTimeout: time.Minute})
		d.send(call("1") + "\n")
		d.out.set(true, nil)
		d.send(call("2") + "\n")
		time.Sleep(time.Minute - 1)
		assert.True(t, d.running())
		time.Sleep(time.Nanosecond)
		assert.False(t, d.running())
		require.ErrorIs(t, d.err, ErrOutputStalled)
	})
}

// The order of arrival is kept up to the handlers' start, so that a cancel
// behind its request finds it.
func TestServePreemptKeepsOrder(t *testing.T) {
	var in strings.Builder
	var want, got []string
	for i := range 300 {
		id := fmt.Sprint(i)
		in.WriteString(call(id) + "\n")
		want = append(want, "number:"+id)
	}
	_, err := serve(t, in.String(), echo, Options{Preempt: func(r *Request) { got = append(got, r.ID.Key()) }})
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// Ids that a decoder would merge are two requests, and a cancel hits its own.
func TestServeNeighbourIDs(t *testing.T) {
	for _, pair := range [][2]string{{"9007199254740992", "9007199254740993"}, {"1", `"1"`}, {"1e2", "100"}} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			open := map[string]*Request{}
			d := drive(t, hold(release), Options{Preempt: func(r *Request) { open[r.ID.Key()] = r }})
			for _, id := range pair {
				d.send(`{"method":"hold","id":` + id + `}` + "\n")
			}
			require.Len(t, open, 2)
			open[mcp.ParseID([]byte(pair[1])).Key()].Cancel()
			synctest.Wait()
			close(release)
			out, err := d.finish()
			require.NoError(t, err)
			assert.Equal(t, `{"jsonrpc":"2.0","id":`+pair[0]+`,"result":{"method":"hold"}}`+"\n", out)
		})
	}
}
