package engine

import (
	"github.com/google/uuid"
)

// EventIDs is the namespace of derived event ids. It must never change.
var EventIDs = uuid.MustParse("9a4b3f0e-6f5c-5d0e-8b43-6d696c6c7261")
