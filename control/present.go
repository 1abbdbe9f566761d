package control

import (
	"context"
	"errors"
)

func (s *Server) join(context.Context, string) error { return errors.New("joining is not possible yet") }

func (s *Server) present(ctx context.Context) error { return s.dir.writeAdmin(s.identity, s.settings) }
