package main

func Example() {
	main()
	// Unordered output:
	// placed
	// invoice 1234 over 700
	// paid
}
