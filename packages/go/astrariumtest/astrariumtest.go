// Package astrariumtest starts Astrarium servers for tests: in milliseconds, on a free port, gone without a trace.
//
//	func TestLibrary(t *testing.T) {
//		server := astrariumtest.Start(t)
//		client, err := azcosmos.NewClientFromConnectionString(server.ConnectionString(), nil)
//	}
package astrariumtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Key is the key that the service's emulator has, and a server that is told no other.
const Key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// Patience is how long a server may take to start or to stop.
const Patience = 30 * time.Second

const logBytesMax = 1 << 20

var endpointInLine = regexp.MustCompile(`AccountEndpoint=([^;]+);`)

// Server is a running server. It ends with the test, and with this process, however that ends.
type Server struct {
	// Endpoint is what an SDK connects to, over plain HTTP.
	Endpoint string
	// Key is the account key.
	Key string

	command *exec.Cmd
	stdin   io.Closer
	log     *boundedLog
	stop    sync.Once
}

// Binary tells where the program is: what ASTRARIUM_BIN says, or the one on the path.
func Binary() (string, error) {
	if given := os.Getenv("ASTRARIUM_BIN"); given != "" {
		return given, nil
	}
	found, err := exec.LookPath("astrarium")
	if err != nil {
		return "", errors.New("the program astrarium is not on the path; set ASTRARIUM_BIN to where it is")
	}
	return found, nil
}

// Start starts a server that keeps nothing, waits until it is ready, and stops it when the test ends. Further arguments are those of
// astrarium serve. The test fails at once if the server does not start.
func Start(t testing.TB, arguments ...string) *Server {
	t.Helper()
	server, err := Launch(append([]string{"--memory"}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

// Launch starts a server for other uses than a single test, such as TestMain: the caller says where data goes (--memory or --data), and
// stops it.
func Launch(arguments ...string) (*Server, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	words := append([]string{"serve", "--listen", "127.0.0.1:0", "--until-stdin-closes"}, arguments...)
	server := &Server{Key: Key, command: exec.Command(binary, words...), log: &boundedLog{}}
	server.command.Env = environment()
	server.command.Stderr = server.log
	stdin, err := server.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	server.stdin = stdin
	stdout, err := server.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.command.Start(); err != nil {
		return nil, fmt.Errorf("astrarium could not be started: %w", err)
	}
	late := time.AfterFunc(Patience, func() { _ = server.command.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewReader(stdout)
	line, _ := lines.ReadString('\n')
	found := endpointInLine.FindStringSubmatch(line)
	if found == nil {
		_ = server.command.Process.Kill()
		_ = server.command.Wait()
		return nil, fmt.Errorf("astrarium did not start: %s", strings.TrimSpace(server.Log()+line))
	}
	// A pipe that nobody reads would stop the server.
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	server.Endpoint = found[1]
	return server, nil
}

// ConnectionString is endpoint and key in one text.
func (s *Server) ConnectionString() string {
	return fmt.Sprintf("AccountEndpoint=%s;AccountKey=%s;", s.Endpoint, s.Key)
}

// Log is what the server has logged so far.
func (s *Server) Log() string {
	return s.log.String()
}

// Stop ends the server in good order, and kills it if that takes too long.
func (s *Server) Stop() {
	s.stop.Do(func() {
		late := time.AfterFunc(Patience, func() { _ = s.command.Process.Kill() })
		defer late.Stop()
		_ = s.stdin.Close()
		_ = s.command.Wait()
	})
}

// environment is ours without settings of servers, which are for other servers than this one.
func environment() []string {
	kept := []string{}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ASTRARIUM_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// boundedLog keeps the last of what is written to it.
type boundedLog struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *boundedLog) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.text.Len() > logBytesMax {
		l.text.Reset()
	}
	return l.text.Write(text)
}

func (l *boundedLog) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}
