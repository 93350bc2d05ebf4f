package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/cmd/trunkline-bench/load/baseline"
	"trunkline/event"
)

// baselineCommand returns the command of the process that fanout --floor measures. It prints its
// address, reads messages from stdin, each preceded by its length and stream, and sends each to
// every socket of the stream.
func baselineCommand(p *cli.Program) *cobra.Command {
	var cfg baseline.Config
	var useTLS bool
	var sockets uint64
	command := &cobra.Command{
		Use:    "floor",
		Short:  "Run a minimal server as the baseline of a measurement",
		Hidden: true,
		Args:   cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := load.RaiseFileLimit(sockets + spareFiles); err != nil {
				return err
			}

			if useTLS {
				cfg.TLS, err = baseline.SelfSigned()
				if err != nil {
					return err
				}
			}

			return serveBaseline(p, cmd.Context(), cfg)
		},
	}

	command.Flags().BoolVar(&cfg.Coalesce, "coalesce", false, "write all queued frames at once")
	command.Flags().IntVar(&cfg.Writers, "writers", runtime.GOMAXPROCS(0), "goroutines that write")
	command.Flags().BoolVar(&useTLS, "secure", false, "use TLS")
	command.Flags().Uint64Var(&sockets, "sockets", 1000, "number of sockets to allow for")

	return command
}

func serveBaseline(p *cli.Program, ctx context.Context, cfg baseline.Config) error {
	server, err := baseline.New(cfg)
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	fmt.Fprintln(p.Out, listener.Addr())
	ctx, cancel := context.WithCancel(ctx)
	var serveErr error
	var serving sync.WaitGroup
	serving.Go(func() { serveErr = server.Serve(ctx, listener) })
	err = relayMessages(ctx, server, bufio.NewReaderSize(p.In, 1<<20))
	cancel()

	serving.Wait()
	return errors.Join(err, serveErr)
}

// messageHeaderBytes is the size of a message's header: length and stream, uint32 each.
const messageHeaderBytes = 8

// relayMessages sends messages until the input ends.
func relayMessages(ctx context.Context, server *baseline.Server, in io.Reader) error {
	var head [messageHeaderBytes]byte
	for {
		_, err := io.ReadFull(in, head[:])
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading messages: %w", err)
		}

		message := make([]byte, binary.BigEndian.Uint32(head[:]))
		_, err = io.ReadFull(in, message)
		if err != nil {
			return fmt.Errorf("reading messages: %w", err)
		}

		if !server.Send(ctx, int(binary.BigEndian.Uint32(head[4:])), message) {
			return nil
		}
	}
}

// baselineProcess is a process of baselineCommand, in the place of a run's server and of its event sink.
type baselineProcess struct {
	command *exec.Cmd
	in      io.WriteCloser
	url     string

	mu     sync.Mutex // publishers of a source run concurrently
	last   event.ID   // of the last message
	buffer []byte
}

// newSelfCommand returns a command that runs this program with other arguments.
func newSelfCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, args...), nil
}

// startBaseline starts the baseline server in its own process, so that its CPU time is measured
// separately.
func (b *fanoutBench) startBaseline() (*baselineProcess, error) {
	useTLS := strings.HasPrefix(b.url, "https:")
	command, err := b.selfCommand("floor", "--sockets", strconv.Itoa(b.subscribers),
		"--coalesce="+strconv.FormatBool(b.baseline == baselineCoalesced), "--secure="+strconv.FormatBool(useTLS))
	if err != nil {
		return nil, fmt.Errorf("starting the baseline: %w", err)
	}

	command.Stderr = b.p.Err
	f := &baselineProcess{command: command, url: "http://"}
	if useTLS {
		f.url = "https://"
	}

	f.in, err = command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the baseline: %w", err)
	}

	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the baseline: %w", err)
	}

	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the baseline: %w", err)
	}

	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the baseline: it prints no address: %w", err), f.stop())
	}

	f.url += strings.TrimSpace(address)
	return f, nil
}

func (f *baselineProcess) stop() error { return errors.Join(f.in.Close(), f.command.Wait()) }

// Publish sends events in the channel's format, so that frames of the baseline and of a server have the same
// size.
func (f *baselineProcess) Publish(_ context.Context, events []load.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.buffer = f.buffer[:0]
	for _, e := range events {
		now := time.Now()
		f.last = event.NextID(f.last, now.UnixMilli(), 0)
		message := event.Message{
			ID: f.last, Type: event.AgentPerformance, AccountID: baselineAccount, Timestamp: now.Unix(), Data: e.JSON,
			Metadata: event.Metadata{Source: "bench", OriginalFormat: "generic", ProcessedAt: now.Unix()},
		}
		start := len(f.buffer)
		f.buffer = message.Append(append(f.buffer, make([]byte, messageHeaderBytes)...))
		binary.BigEndian.PutUint32(f.buffer[start:], uint32(len(f.buffer)-start-messageHeaderBytes))
		binary.BigEndian.PutUint32(f.buffer[start+4:], uint32(e.Stream))
	}

	_, err := f.in.Write(f.buffer)
	return err
}

// baselineAccount has the length of a run's account id.
const baselineAccount = "bench-floor000-1"
