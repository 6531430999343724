// After a book was created: its authors have one book more.
function countBook() {
  const collection = getContext().getCollection();
  const book = getContext().getResponse().getBody();
  book.authors.forEach(({ id }) => {
    collection.readDocument(collection.getAltLink() + "/docs/" + id, (error, author) => {
      if (error) throw error;
      author.countOfBooks += 1;
      if (author.countOfBooks > 3) throw new Error("the shelf of " + author.name + " is full");
      collection.replaceDocument(author._self, author, (failure) => {
        if (failure) throw failure;
      });
    });
  });
}
