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
	"trunkline/cmd/trunkline-bench/load/floor"
	"trunkline/event"
)

// floorCommand returns the command of the process that fanout --floor measures. It prints its
// address, reads messages from stdin, each preceded by its length and stream, and sends each to
// every socket of the stream.
func floorCommand(p *cli.Program) *cobra.Command {
	var cfg floor.Config
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
				cfg.TLS, err = floor.SelfSigned()
				if err != nil {
					return err
				}
			}

			return serveFloor(p, cmd.Context(), cfg)
		},
	}

	command.Flags().BoolVar(&cfg.Coalesce, "coalesce", false, "write all queued frames at once")
	command.Flags().IntVar(&cfg.Writers, "writers", runtime.GOMAXPROCS(0), "goroutines that write")
	command.Flags().BoolVar(&useTLS, "secure", false, "use TLS")
	command.Flags().Uint64Var(&sockets, "sockets", 1000, "number of sockets to allow for")

	return command
}

func serveFloor(p *cli.Program, ctx context.Context, cfg floor.Config) error {
	server, err := floor.New(cfg)
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

// floorHeaderBytes is the size of a message's header: length and stream, uint32 each.
const floorHeaderBytes = 8

// relayMessages sends messages until the input ends.
func relayMessages(ctx context.Context, server *floor.Server, in io.Reader) error {
	var head [floorHeaderBytes]byte
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

// floorProcess is a floor in the place of a run's server and of its event sink.
type floorProcess struct {
	command *exec.Cmd
	in      io.WriteCloser
	url     string

	mu     sync.Mutex // publishers of a source run concurrently
	last   event.ID
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

// startFloor starts the baseline server in its own process, so that its CPU time is measured
// separately.
func (b *fanoutBench) startFloor() (*floorProcess, error) {
	useTLS := strings.HasPrefix(b.url, "https:")
	command, err := b.selfCommand("floor", "--sockets", strconv.Itoa(b.subscribers),
		"--coalesce="+strconv.FormatBool(b.floor == floorCoalesced), "--secure="+strconv.FormatBool(useTLS))
	if err != nil {
		return nil, fmt.Errorf("starting a floor: %w", err)
	}

	command.Stderr = b.p.Err
	f := &floorProcess{command: command, url: "http://"}
	if useTLS {
		f.url = "https://"
	}

	f.in, err = command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a floor: %w", err)
	}

	out, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a floor: %w", err)
	}

	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting a floor: %w", err)
	}

	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a floor: it prints no address: %w", err), f.stop())
	}

	f.url += strings.TrimSpace(address)
	return f, nil
}

func (f *floorProcess) stop() error { return errors.Join(f.in.Close(), f.command.Wait()) }

// Publish sends events in the channel's format, so that frames of floor and server have the same
// size.
func (f *floorProcess) Publish(_ context.Context, events []load.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.buffer = f.buffer[:0]
	for _, e := range events {
		now := time.Now()
		f.last = event.NextID(f.last, now.UnixMilli(), 0)
		message := event.Message{
			ID: f.last, Type: event.AgentPerformance, AccountID: floorAccount, Timestamp: now.Unix(), Data: e.JSON,
			Metadata: event.Metadata{Source: "bench", OriginalFormat: "generic", ProcessedAt: now.Unix()},
		}
		start := len(f.buffer)
		f.buffer = message.Append(append(f.buffer, make([]byte, floorHeaderBytes)...))
		binary.BigEndian.PutUint32(f.buffer[start:], uint32(len(f.buffer)-start-floorHeaderBytes))
		binary.BigEndian.PutUint32(f.buffer[start+4:], uint32(e.Stream))
	}

	_, err := f.in.Write(f.buffer)
	return err
}

// floorAccount has the length of a run's account id.
const floorAccount = "bench-floor000-1"
