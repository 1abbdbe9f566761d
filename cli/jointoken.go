package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// joinUsage is the help of --join.
const joinUsage = "join the control plane that made this token; - reads it from standard input, which other users cannot see"

// joinToken is the token that --join was given: "-" stands for a line of standard input, because everybody on a machine can
// see the arguments of its processes.
func joinToken(arg string, stdin io.Reader) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	line, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("while reading the token from standard input: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", &exitError{exitUsage, fmt.Errorf("--join -: standard input has no token")}
	}
	return line, nil
}
