mod writer;
